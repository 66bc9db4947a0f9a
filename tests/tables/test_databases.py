"""SQLite files and PostgreSQL servers; passwords stay where they are."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from regimix import tables
from regimix.errors import DataError, MissingExtraError
from regimix.tables.databases import _without_secrets
from tests.patience import ENOUGH, comes_true

ROWS = [(1, 1.5, "red", 2.0), (2, 2.5, "blue", 4.0), (3, None, "red", 6.0), (4, 0.5, "red", 1.0)]
MAKE = "create table points (id integer, x double precision, colour text, y double precision)"


def check(data):
    """The numbers of ROWS, whatever database they came from."""
    assert data.feature_names == ("x", "colour=blue")
    assert data.X.tolist() == [[1.5, 0], [2.5, 1], [0.5, 0]]
    assert data.y.tolist() == [2, 4, 1]
    assert data.keys.tolist() == [1, 2, 4]
    assert (data.n_read, data.n_dropped) == (4, 1)


# --- SQLite ---------------------------------------------------------------------------------------


@pytest.fixture
def sqlite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("points one.db") as connection:
        connection.execute(MAKE)
        connection.executemany("insert into points values (?, ?, ?, ?)", ROWS)
    connection.close()
    return tmp_path / "points one.db"


@pytest.mark.parametrize(
    "address",
    [
        "sqlite:///points one.db",
        "sqlite:///points%20one.db",
        "sqlite:///{}",
        "sqlite:///points%20one.db?mode=ro&immutable=1",
    ],
)
def test_an_sqlite_file(sqlite, address):
    address = address.format(sqlite)
    check(tables.read(address, query="select * from points", target="y", key="id"))


def test_a_column_of_several_types_is_read_like_text(sqlite):
    query = "select id, case when id = 2 then 'none' else id end as x, y, null as z from points"
    data = tables.read("sqlite:///points one.db", query=query, target="y", features=["x"])
    assert data.recipe.columns[0].levels == ("1", "3", "4", "none")


@pytest.mark.parametrize(
    ("address", "query", "reason"),
    [
        ("sqlite:///points one.db", None, "a database needs a query"),
        ("sqlite:///points one.db", "  ", "a database needs a query"),
        ("sqlite:///points one.db", "select * from lines", "no such table: lines"),
        ("sqlite:///points one.db", "delete from points", "readonly|returns no rows"),
        ("sqlite:///points one.db", "select 1; select 2", "one statement"),
        ("sqlite:///points one.db", "select y, y from points", "more than one column named 'y'"),
        ("sqlite:///points one.db", "select * from points where y > 9", "no rows"),
        ("sqlite:///nothing.db", "select 1", "three slashes before a relative path"),
        ("sqlite:///points one.db?key=a", "select 1", "has the option 'key'; allowed are"),
        ("mysql://me:secret@host/db", "select 1", "begin with mysql:// are not read; allowed are"),
        ("https://example.org/a.csv", None, "begin with https:// are not read"),
    ],
)
def test_questions_that_have_no_answer(sqlite, address, query, reason):
    with pytest.raises(DataError, match=reason) as caught:
        tables.read(address, query=query, target="y")
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "a.db"
    path.write_text("not a database, but long enough to be taken for one by someone in a hurry")
    with pytest.raises(DataError, match="not a database"):
        tables.read(f"sqlite:///{path}", query="select * from points", target="y")


def test_a_query_changes_nothing(sqlite):
    before = sqlite.read_bytes()
    with pytest.raises(DataError):
        tables.read("sqlite:///points one.db", query="drop table points", target="y")
    assert sqlite.read_bytes() == before


# --- addresses with passwords ---------------------------------------------------------------------

SECRET = "s3cr:t@ /?#p%ss"


@pytest.mark.parametrize(
    ("rest", "address", "password"),
    [
        ("me@host/db", "postgresql://me@host/db", None),
        ("me:pass@host:5432/db", "postgresql://me@host:5432/db", "pass"),
        ("me:a%40b%2Fc@host/db", "postgresql://me@host/db", "a@b/c"),
        ("me:a@b/c@host/db", "postgresql://me@host/db", "a@b/c"),
        ("me:a?b@host/db", "postgresql://me@host/db", "a?b"),
        ("me:a@b?c@host/db?sslmode=allow", "postgresql://me@host/db?sslmode=allow", "a@b?c"),
        ("me@host/db?user=me@there", "postgresql://me@host/db?user=me%40there", None),
        ("me:a:b@host/db?sslmode=require", "postgresql://me@host/db?sslmode=require", "a:b"),
        ("host:5432/db?user=me@there", "postgresql://host:5432/db?user=me%40there", None),
        ("/db?host=/tmp&user=me&password=x", "postgresql:///db?host=%2Ftmp&user=me", "x"),
        (":pass@host/db", "postgresql://@host/db", "pass"),
    ],
)
def test_passwords_are_taken_out_of_addresses(rest, address, password):
    plain, secrets = _without_secrets(rest)
    assert plain == address
    assert secrets.get("password") == password


# --- PostgreSQL -----------------------------------------------------------------------------------


class Server:
    """A PostgreSQL server of one's own, in a folder of its own, without a network."""

    def __init__(self, binaries, folder):
        self.folder = folder
        # The server refuses to be run by root.
        self.user = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
        if self.user:
            os.chown(folder, 65534, 65534)
        (folder / "password").write_text(SECRET)
        (folder / "password").chmod(0o644)
        self._run(
            binaries / "initdb", "-D", folder / "data", "-U", "tester", "--no-sync", "--locale=C",
            "--encoding=UTF8", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}",
        )  # fmt: skip
        # It ends by itself should the tests be killed.
        command = ["timeout", "--signal=INT", str(10 * ENOUGH), binaries / "postgres"]
        command += ["-D", folder / "data"]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "-k", folder, "-h", "", "-F"],
                stdout=log,
                stderr=log,
                cwd=folder,
                **self.user,
            )
        self.options = f"host={folder}&user=tester"

    def _run(self, *command):
        run = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=ENOUGH,
            cwd=self.folder, **self.user,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr

    def wait(self):
        """Wait until it answers; give it a table."""
        assert comes_true(self._answers), (self.folder / "log").read_text()
        with self.connect() as connection:
            connection.execute(MAKE)
            for row in ROWS:
                connection.execute("insert into points values (%s, %s, %s, %s)", row)

    def _answers(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def connect(self):
        return psycopg.connect(
            host=str(self.folder), user="tester", password=SECRET, dbname="postgres"
        )

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(ENOUGH)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def server():
    # Debian keeps the programs of a server off the path.
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found += [Path(path) for path in [shutil.which("initdb")] if path]
    if not found:
        reason = "PostgreSQL is not installed (Debian's package postgresql)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    initdb = found[0]
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        running = Server(initdb.parent, Path(folder))
        try:
            running.wait()
            yield running
        finally:
            running.stop()


QUERY = "select * from points order by id"


def test_a_postgresql_server(server, monkeypatch):
    address = f"postgresql:///postgres?{server.options}"
    monkeypatch.setenv("PGPASSWORD", SECRET)
    check(tables.read(address, query=QUERY, target="y", key="id"))
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("MY_SECRET", SECRET)
    data = tables.read(address, query=QUERY, target="y", key="id", password_variable="MY_SECRET")
    check(data)
    assert data.source.startswith("the database postgresql:///postgres?host=")
    check(tables.read_like(address, data.recipe, query=QUERY, password_variable="MY_SECRET"))


def test_types_of_a_server(server, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", SECRET)
    query = (
        "select i::numeric / 4 as x, i::bigint as n, i % 2 = 0 as even, now() as t, "
        "date '2024-01-01' + i as day, i::real as y from generate_series(1, 40) as i"
    )
    address = f"postgresql:///postgres?{server.options}"
    data = tables.read(address, query=query, target="y")
    assert data.feature_names == ("x", "n", "even")
    assert data.X[1].tolist() == [0.5, 2, 1]
    assert len(data.notes) == 3
    dated = tables.read(address, query=query, target="y", features=["day"])
    assert dated.X[1, 0] - dated.X[0, 0] == 1


def test_a_query_of_a_server_changes_nothing(server, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", SECRET)
    address = f"postgresql:///postgres?{server.options}"
    with pytest.raises(DataError, match="read-only transaction"):
        tables.read(address, query="delete from points returning y", target="y")
    with pytest.raises(DataError, match="returns no rows; it must be a select"):
        tables.read(address, query="set application_name = 'a'", target="y")
    with server.connect() as connection:
        assert connection.execute("select count(*) from points").fetchone() == (4,)


def everything_about(error):
    """Collect every word of an error: text, repr, causes, contexts, arguments, notes."""
    words, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        words += [str(error), repr(error), repr(error.args), *getattr(error, "__notes__", [])]
        words += traceback.format_exception(error)
        error = error.__cause__ or error.__context__
    return "\n".join(words)


def spelled(secret):
    return [secret, quote(secret), quote(secret, safe=""), repr(secret)[1:-1]]


WRONG = "wr0ng-p%ssword/@:?"


@pytest.mark.parametrize(
    ("address", "query"),
    [
        ("postgresql://tester:{}@/postgres?host={}", QUERY),
        ("postgresql:///postgres?host={1}&user=tester&password={0}", QUERY),
        ("postgresql://tester:{}@localhost:1/postgres", QUERY),
        ("postgresql://tester:{}@/postgres?host=/nowhere", QUERY),
        ("postgresql://tester:{}@[bad/postgres", QUERY),
        ("postgresql://tester:{}@/postgres?host={}&no_such_option=1", QUERY),
        ("postgresql://tester:{}@host:port/postgres", QUERY),
        ("postgresql://tester:{}@/postgres", ""),
        ("mysql://tester:{}@/postgres", QUERY),
    ],
)
@pytest.mark.parametrize("quoted", [False, True])
def test_a_password_is_never_told(server, capfd, caplog, address, query, quoted):
    secret = quote(WRONG, safe="") if quoted else WRONG
    with pytest.raises(DataError) as caught:
        tables.read(address.format(secret, server.folder), query=query, target="y")
    told = everything_about(caught.value) + "".join(capfd.readouterr()) + caplog.text
    # A traceback shows the lines of this test, which spell it out.
    told = "\n".join(line for line in told.splitlines() if not line.startswith("    "))
    for spelling in spelled(WRONG):
        assert spelling not in told
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("variable", ["PGPASSWORD", "MY_SECRET"])
def test_a_password_from_the_environment_is_never_told(server, monkeypatch, capfd, variable):
    monkeypatch.setenv(variable, WRONG)
    address = f"postgresql:///postgres?{server.options}"
    with pytest.raises(DataError, match="password authentication failed") as caught:
        tables.read(address, query=QUERY, target="y", password_variable=variable)
    assert WRONG not in everything_about(caught.value) + "".join(capfd.readouterr())


def test_a_password_in_an_address_works_and_is_told_nowhere(server):
    address = f"postgresql://tester:{quote(SECRET, safe='')}@/postgres?host={server.folder}"
    data = tables.read(address, query=QUERY, target="y", key="id")
    check(data)
    assert all(spelling not in repr(data) for spelling in spelled(SECRET))
    with pytest.raises(DataError, match='relation "lines" does not exist') as caught:
        tables.read(address, query="select * from lines", target="y")
    assert all(word not in str(caught.value) for word in spelled(SECRET))


def test_a_variable_that_is_not_set(server):
    with pytest.raises(DataError, match="the environment has no variable 'NOT_SET'"):
        tables.read("postgresql:///db", query=QUERY, target="y", password_variable="NOT_SET")


def test_without_psycopg_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"need psycopg.* pip install 'regimix\[sql\]'"):
        tables.read("postgresql://me:secret@host/db", query=QUERY, target="y")
