"""The site that `make docs` has built, in a real Chromium: every page, narrow and wide, light and dark."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import get, set_screen

pytestmark = pytest.mark.site
SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if "_static" not in path.parts)
SCREENS = [(width, scheme) for width in (390, 1280) for scheme in ("light", "dark")]
READABLE = 4.5  # contrast of text, by the Web Content Accessibility Guidelines, level AA

# Texts of the article with less contrast than that, as [contrast, the element, the text].
FAINT = """(() => {
  const part = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const rgba = text => { const v = text.match(/[\\d.]+/g).map(Number); return v.length < 4 ? [...v, 1] : v };
  const light = c => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  const over = (top, under) => [0, 1, 2].map(i => top[3] * top[i] + (1 - top[3]) * under[i]).concat(1);
  const ground = e => {
    const own = rgba(getComputedStyle(e).backgroundColor);
    return own[3] == 1 ? own : over(own, e.parentElement ? ground(e.parentElement) : [255, 255, 255, 1]);
  };
  const own = e => [...e.childNodes].filter(n => n.nodeType == 3).map(n => n.data.trim()).join('');
  const found = [];
  for (const e of document.querySelectorAll('article *')) {
    const text = own(e), style = getComputedStyle(e);
    if (!text || !e.getClientRects().length || style.visibility == 'hidden' || style.opacity == 0) continue;
    if (e.matches('a.headerlink, button, button *, [class*=svg], svg *')) continue;
    const under = ground(e), a = light(over(rgba(style.color), under)), b = light(under);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < %s) found.push([contrast.toFixed(1), e.tagName + '.' + e.className, text.slice(0, 30)]);
  }
  return found.slice(0, 5);
})()"""


@pytest.fixture(scope="module", autouse=True)
def built():
    if not PAGES:
        pytest.skip("the site is not built (make docs)")


def settle(page):
    """Load pictures that wait to be scrolled to, and wait for all."""
    page.execute_async_script(
        "const done = arguments[0], all = [...document.images]; all.forEach(i => i.loading = 'eager');"
        "Promise.all(all.map(i => i.complete || new Promise(r => i.onload = i.onerror = r))).then(done);"
    )


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_at_every_width_and_readable_in_both_schemes(name, browser):
    set_screen(browser, *SCREENS[0])
    browser.get((SITE / name).as_uri())
    settle(browser)
    assert browser.get_log("browser") == []
    assert get(browser, "performance.getEntriesByType('resource').map(e => e.name).filter(n => /^http/.test(n))") == []
    assert get(browser, "[...document.images].filter(i => !i.naturalWidth).map(i => i.src)") == []
    for width, scheme in SCREENS:
        set_screen(browser, width, scheme)
        assert get(browser, "document.documentElement.scrollWidth") <= width, (width, scheme)
        assert get(browser, FAINT % READABLE) == [], (width, scheme)


@pytest.fixture(scope="module")
def server():
    """The address of a local server of the site."""
    handler = functools.partial(QuietHandler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.parametrize("served", [False, True], ids=["from files", "from a server"])
def test_search_finds_pages_offline(served, browser, server):
    """From files too, where a browser refuses only the excerpts of the pages found."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    set_screen(browser, 1280, "light")
    browser.get("about:blank")
    browser.get_log("browser")  # the last page's: read, and so forgotten
    browser.get(f"{server if served else SITE.as_uri()}/index.html")
    browser.find_element(By.CSS_SELECTOR, ".sidebar-search").send_keys("langevin", Keys.ENTER)
    links = "[...document.querySelectorAll('#search-results li a')].map(a => a.getAttribute('href'))"
    found = lambda page: any("samplers.html" in link for link in get(page, links))  # noqa: E731
    WebDriverWait(browser, 60).until(found)
    if served:
        excerpts = "[...document.querySelectorAll('#search-results p.context')].length"
        WebDriverWait(browser, 60).until(lambda page: get(page, excerpts) > 0)
        assert [line for line in browser.get_log("browser") if "favicon" not in line["message"]] == []
