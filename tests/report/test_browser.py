"""The page in a real Chromium, driven as a reader would."""

import pytest
from browser import get

from adance.report import write_report


@pytest.fixture
def opened(browser, run_folder):
    def open_page(kind):
        browser.get(write_report(run_folder(kind)).absolute().as_uri())
        return browser

    return open_page


@pytest.mark.parametrize("kind", ["image", "plane", "vector"])
def test_no_complaint_in_the_console_and_nothing_is_fetched(kind, opened):
    page = opened(kind)
    assert page.get_log("browser") == []
    fetched = get(page, "performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:'))")
    assert fetched == []
    assert get(
        page, "[...document.images].filter(i => !i.loading || i.loading == 'eager').every(i => i.naturalWidth > 0)"
    )
    assert get(page, "document.documentElement.scrollWidth <= innerWidth")


def test_the_slider_moves_the_picture_by_keyboard(opened):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    page = opened("image")
    slider = page.find_element(By.ID, "slider")
    at = lambda: get(page, "[frame.src, frame.alt, where.textContent, slider.getAttribute('aria-valuetext')]")  # noqa: E731
    end = at()
    assert end[2] == "step 40 of 40"
    slider.send_keys(Keys.ARROW_LEFT)
    before = at()
    assert before[2] == "step 39 of 40"
    slider.send_keys(Keys.HOME)
    start = at()
    assert start[2] == "step 0 of 40"
    assert start[3].startswith("step 0 of 40, mean energy")
    assert all(len({a, b, c}) == 3 for a, b, c in zip(end, before, start, strict=True))


def test_play_runs_to_the_end_and_stills_jump(opened):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    page = opened("image")
    page.find_element(By.CSS_SELECTOR, ".film button").click()
    assert get(page, "where.textContent") == "step 0 of 40"
    page.find_element(By.ID, "play").click()
    assert get(page, "play.getAttribute('aria-label')") == "Stop"
    WebDriverWait(page, 30).until(lambda p: get(p, "where.textContent") == "step 40 of 40")
    assert get(page, "play.getAttribute('aria-label')") == "Play from noise"


def test_points_of_the_plane_move(opened):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    page = opened("plane")
    first = "document.querySelector('.chains circle').getAttribute('cx')"
    end = get(page, first)
    page.find_element(By.ID, "slider").send_keys(Keys.HOME)
    assert get(page, first) != end


@pytest.mark.parametrize("kind", ["image", "plane"])
def test_light_dark_narrow_and_print(kind, opened):
    page = opened(kind)
    ground = "getComputedStyle(document.body).backgroundColor"
    curve = "getComputedStyle(document.querySelector('.charts svg path[style*=accent]')).stroke"
    text = "getComputedStyle(document.querySelector('.charts svg text')).fill"
    colors = set()
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
        colors.add((get(page, ground), get(page, curve), get(page, text)))
    assert colors == {
        ("rgb(253, 252, 250)", "rgb(194, 84, 32)", "rgb(95, 91, 85)"),
        ("rgb(22, 21, 20)", "rgb(240, 138, 84)", "rgb(170, 164, 154)"),
    }
    narrow = {"width": 340, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    assert get(page, "document.documentElement.scrollWidth <= 340")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    assert get(page, ground) == "rgb(255, 255, 255)"
    assert get(page, "getComputedStyle(document.querySelector('.slider')).display") == "none"
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
