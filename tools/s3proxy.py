"""An S3 for tests: moto, and a proxy before it that cuts connections, delays requests and has rivals write."""

import http.client
import http.server
import os
import pathlib
import random
import socket
import sqlite3
import subprocess
import sys
import threading
import time

TREE = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1",
               "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "2"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_moto():
    """moto as a program of its own. Answers it and its port; None where it is missing."""
    port = free_port()
    path = os.pathsep.join(filter(None, [str(TREE / ".build/python"), os.environ.get("PYTHONPATH")]))
    program = subprocess.Popen(
        [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)],
        env=os.environ | ENVIRONMENT | {"PYTHONPATH": path}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for _ in range(600):
        if program.poll() is not None:
            print("SKIPPED fleet-s3: moto cannot be started:", program.stderr.read().decode().strip()[-200:])
            return None
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            threading.Thread(target=program.stderr.read, daemon=True).start()
            return program, port
        except OSError:
            time.sleep(0.05)
    raise SystemExit("moto does not answer")


class World:
    """What the proxy knows of the schedule at work."""

    def __init__(self, moto):
        self.moto = moto
        self.write = threading.Lock()   # one write at a time
        self.reset(random.Random(0), None)

    def reset(self, dice, rival, naive=False):
        self.dice, self.rival, self.naive = dice, rival, naive
        self.trouble = 0.0
        self.current = {}      # path of a database: its ETag
        self.wrongs, self.counts, self.late = [], {}, []

    def meddle(self, path):
        """A rival writes, if there is one."""
        if self.rival:
            self.rival(path)

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def pick(self, choices, share=1.0):
        """Which trouble befalls a request: None, mostly."""
        if self.trouble and self.dice.random() < self.trouble * share:
            what = self.dice.choice(choices)
            self.count(what)
            return what
        return None

    def ask(self, method, path, headers=None, body=None):
        link = http.client.HTTPConnection("127.0.0.1", self.moto, timeout=60)
        own = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"}
        link.request(method, path, body, own | (headers or {}))
        answer = link.getresponse()
        content = answer.read()
        link.close()
        return answer.status, answer.getheaders(), content

    def put(self, path, headers, body, worker):
        """Carries out a write; under the lock."""
        is_store = path.endswith(".sqlite")
        conditions = {name.lower(): value for name, value in headers.items()}
        if worker and is_store:
            if "if-match" not in conditions and not self.naive:
                self.wrongs.append(f"an upload of {path} has no condition")
            why = self.whole(body)
            if why:
                self.wrongs.append(f"an upload of {path} is no whole store: {why}")
        answer = self.ask("PUT", path, headers, body)
        if answer[0] == 200:
            etag = dict(answer[1]).get("ETag") or dict(answer[1]).get("etag")
            if is_store:
                before = self.current.get(path)
                if worker and before and conditions.get("if-match", before).strip('"') != before.strip('"'):
                    self.wrongs.append(f"{path}: {conditions['if-match']} replaced {before}")
                self.current[path] = etag
                self.count("uploads stored" if worker else "rivals' writes")
        elif answer[0] == 412 and worker:
            self.count("uploads refused")
        return answer

    @staticmethod
    def whole(body):
        connection = sqlite3.connect(":memory:")
        try:
            connection.deserialize(body)
            answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
            return None if answer == "ok" else answer
        except sqlite3.Error as why:
            return str(why)
        finally:
            connection.close()


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    world = None

    def log_message(self, *_):
        pass

    def cut(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def reply(self, answer, length=None):
        status, headers, content = answer
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "server", "date"):
                self.send_header(name, value)
        size = dict((name.lower(), value) for name, value in headers).get("content-length", str(len(content)))
        self.send_header("Content-Length", size if self.command == "HEAD" else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content if length is None else content[:length])

    def error(self, status, code):
        self.reply((status, [("Content-Type", "application/xml")],
                    f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()))

    def do_GET(self):
        world = self.world
        what = world.pick(["cut before a read", "cut in an answer", "error 500"], 0.2)
        if what == "cut before a read":
            return self.cut()
        if what == "error 500":
            return self.error(500, "InternalError")
        answer = world.ask(self.command, self.path, self.kept())
        if what == "cut in an answer":
            self.reply(answer, len(answer[2]) // 2)
            return self.cut()
        self.reply(answer)

    do_HEAD = do_GET

    def kept(self):
        drop = ("host", "connection", "content-length", "expect", "authorization", "transfer-encoding")
        return {name: value for name, value in self.headers.items() if name.lower() not in drop}

    def do_PUT(self):
        world, length = self.world, int(self.headers.get("Content-Length", 0))
        what = world.pick(["cut before a write", "cut in a write", "cut after a write", "late write", "error 503",
                           "rival before a write", "rival after a write", "cut after a write, then a rival"])
        if what == "cut in a write":
            self.rfile.read(length // 2)
            return self.cut()
        body = self.rfile.read(length)
        if len(body) < length:   # the client was killed: S3 stores no half objects
            return self.cut()
        if what == "cut before a write":
            return self.cut()
        if what == "error 503":
            return self.error(503, "SlowDown")
        headers, path = self.kept(), self.path
        if what == "late write":
            def later():
                with world.write:
                    world.put(path, headers, body, True)
            timer = threading.Timer(world.dice.uniform(0.05, 1.0), later)
            world.late.append(timer)
            timer.start()
            return self.cut()
        with world.write:
            if what == "rival before a write" and path.endswith(".sqlite"):
                world.meddle(path)
            answer = world.put(path, headers, body, True)
            if what in ("rival after a write", "cut after a write, then a rival") and path.endswith(".sqlite"):
                world.meddle(path)
        if what in ("cut after a write", "cut after a write, then a rival"):
            return self.cut()
        self.reply(answer)


def serve(world):
    """The proxy, on a thread of its own."""
    Proxy.world = world
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.handle_error = lambda *_: None   # clients that are killed
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
