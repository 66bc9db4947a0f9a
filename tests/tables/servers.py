"""Servers of tables, each a process of its own: ``python -m tests.tables.servers s3``.

Clients leave in the middle of an answer, some on purpose. What a thread of a server raises then is
no fault of the test that happens to run, so no server shares a process with the tests.
"""

import subprocess
import sys
from contextlib import contextmanager

from flask import Flask, abort, send_from_directory
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


def bucket():
    """Return a whole S3 service."""
    return DomainDispatcherApplication(create_backend_app)


def pages(folder):
    """Return a service of the files of a folder, parts of them where parts are asked for."""
    app = Flask(__name__)

    def answer(name):
        if name == "broken.parquet":
            abort(500)
        return send_from_directory(folder, name, conditional=True)

    app.add_url_rule("/<name>", view_func=answer)
    return app


SERVICES = {"s3": bucket, "pages": pages}


@contextmanager
def serving(service, *words):
    """Serve on this machine until the block ends; give the port."""
    command = [sys.executable, "-m", "tests.tables.servers", service, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


if __name__ == "__main__":
    service, *words = sys.argv[1:]
    server = make_server("127.0.0.1", 0, SERVICES[service](*words), threaded=True)
    print(server.server_port, flush=True)  # noqa: T201  # whoever started this process reads it
    server.serve_forever()
