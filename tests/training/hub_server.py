"""A server that speaks the part of the hub's HTTP interface that huggingface_hub uses for models, in memory."""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import yaml

TOKEN = "hf_test"


class Hub:
    """Repositories, each with commits (path -> bytes) and names of commits; large files by their SHA-256.

    Attributes:
        repositories: name -> {"commits": {oid: files}, "refs": {branch or tag: oid}}.
        large: SHA-256 -> content.
        requests: Every request, as "METHOD path".
    """

    def __init__(self):
        self.repositories, self.large, self.requests = {}, {}, []

    def commit(self, name, files, branch="main"):
        held = self.repositories.setdefault(name, {"commits": {}, "refs": {}})
        oid = hashlib.sha1(repr((len(held["commits"]), sorted(files.items()))).encode()).hexdigest()
        held["commits"][oid] = files
        held["refs"][branch] = oid
        return oid

    def find(self, name, revision="main"):
        """The commit and its files; an error code if there is none."""
        held = self.repositories.get(name)
        if held is None:
            return None, "RepoNotFound"
        oid = held["refs"].get(revision, revision)
        return (oid, held["commits"][oid]) if oid in held["commits"] else (None, "RevisionNotFound")


def is_large(path):
    return path.endswith(".safetensors")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, content, status=200, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_request(self):
        hub, path = self.server.hub, unquote(urlsplit(self.path).path).strip("/")
        body = self.read_body()
        hub.requests.append(f"{self.command} {path}")
        writes = self.command in ("POST", "PUT") and not path.startswith(("api/validate-yaml", "lfs/"))
        if writes and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer({"error": "Invalid username or password."}, 401)
        parts = path.split("/")
        if path == "api/repos/create":
            return self.create(json.loads(body))
        if path == "api/validate-yaml":
            return self.validate(json.loads(body)["content"])
        if parts[0] == "lfs":
            return self.large(parts[1], body)
        if path.endswith(".git/info/lfs/objects/batch"):
            return self.answer({"transfer": "basic", "objects": [self.upload(x) for x in json.loads(body)["objects"]]})
        if parts[:2] == ["api", "models"]:
            return self.model("/".join(parts[2:4]), parts[4:], body)
        if parts[2:3] == ["resolve"]:
            return self.resolve("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        return self.answer({"error": "not found"}, 404)

    do_GET = do_HEAD = do_POST = do_PUT = handle_request

    def read_body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def url(self, path, host="127.0.0.1"):
        """An address of this server; by another name it is another host, as the store of large files is."""
        return f"http://{host}:{self.server.server_port}/{path}"

    def create(self, asked):
        name = f"{asked['organization']}/{asked['name']}"
        if name in self.server.hub.repositories:
            return self.answer({"error": "exists", "url": self.url(name)}, 409)
        self.server.hub.commit(name, {".gitattributes": b""})
        return self.answer({"url": self.url(name)})

    def validate(self, card):
        head = yaml.safe_load(card.split("---\n")[1])
        wrong = not isinstance(head, dict) or not {"license", "library_name", "tags"} <= head.keys()
        errors = [{"message": "no metadata"}] if wrong else []
        return self.answer({"errors": errors, "warnings": []}, 400 if wrong else 200)

    def upload(self, wanted):
        actions = {"upload": {"href": self.url(f"lfs/{wanted['oid']}")}, "verify": {"href": self.url("lfs/verify")}}
        return wanted | ({} if wanted["oid"] in self.server.hub.large else {"actions": actions})

    def large(self, oid, body):
        held = self.server.hub.large
        if self.command == "PUT":
            assert hashlib.sha256(body).hexdigest() == oid
            held[oid] = body
        elif self.command == "POST":
            asked = json.loads(body)
            return self.answer({}, 200 if len(held.get(asked["oid"], b"")) == asked["size"] else 404)
        else:
            return self.answer(held[oid], ETag=f'"{oid}"')
        return self.answer({})

    def model(self, name, rest, body):
        revision = rest[1] if len(rest) > 1 else "main"
        oid, files = self.server.hub.find(name, revision)
        if oid is None:
            return self.answer({"error": files}, 404, X_Error_Code=files)
        if rest[:1] == ["preupload"]:
            modes = {True: "lfs", False: "regular"}
            asked = [file["path"] for file in json.loads(body)["files"]]
            found = [{"path": x, "uploadMode": modes[is_large(x)], "shouldIgnore": False, "oid": None} for x in asked]
            return self.answer({"files": found})
        if rest[:1] == ["commit"]:
            new = self.server.hub.commit(name, self.changed(dict(files), body))
            return self.answer({"success": True, "commitOid": new, "commitUrl": self.url(f"{name}/commit/{new}")})
        if rest[:1] == ["tree"]:
            return self.answer([self.listed(path, content) for path, content in sorted(files.items())])
        siblings = [{"rfilename": path} for path in sorted(files)]
        return self.answer(
            {"id": name, "modelId": name, "sha": oid, "siblings": siblings, "private": False, "tags": []}
        )

    def changed(self, files, body):
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.hub.large[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        return files

    def listed(self, path, content):
        entry = {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
        if is_large(path):
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
        return entry

    def resolve(self, name, revision, path):
        oid, files = self.server.hub.find(name, revision)
        if oid is None or path not in files:
            code = "EntryNotFound" if oid else files
            return self.answer({"error": code}, 404, X_Error_Code=code, **({"X_Repo_Commit": oid} if oid else {}))
        content = files[path]
        if not is_large(path):
            return self.answer(content, ETag=f'"{hashlib.sha1(content).hexdigest()}"', X_Repo_Commit=oid)
        sha = hashlib.sha256(content).hexdigest()
        self.server.hub.large[sha] = content
        linked = {
            "X_Linked_Etag": f'"{sha}"',
            "X_Linked_Size": len(content),
            "Location": self.url(f"lfs/{sha}", "localhost"),
        }
        return self.answer(b"", 302, X_Repo_Commit=oid, **linked)


@contextmanager
def serving():
    """Yield the hub and its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.hub = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.hub, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
