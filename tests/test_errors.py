"""Messages know which parameters they name."""

import pickle

import pytest

from regimix.errors import (
    DataError,
    InPython,
    Message,
    OutOfTimeError,
    ParameterError,
    Setting,
    UnknownColumnError,
)

MESSAGE = Message(
    "use ",
    Setting("search", "auto"),
    ", raise ",
    Setting("time_limit"),
    InPython(" or pass init"),
    "; got ",
    Setting("separation", 3.0),
    ".",
)


def test_a_message_is_text_as_in_python():
    assert MESSAGE == 'use search="auto", raise time_limit or pass init; got separation=3.'
    assert str(ParameterError(MESSAGE)) == MESSAGE


def test_parameters_can_be_called_otherwise():
    said = MESSAGE.said(lambda setting: f"<{setting.name}>")
    assert said == "use <search>, raise <time_limit>; got <separation>."


@pytest.mark.parametrize("kind", [ParameterError, OutOfTimeError])
def test_errors_keep_the_parts_of_their_message_on_the_way_from_a_worker(kind):
    error = pickle.loads(pickle.dumps(kind(MESSAGE)))
    assert error.args[0].parts == MESSAGE.parts
    assert str(error) == MESSAGE


def test_an_unknown_column_knows_its_role_and_the_names_that_are_close():
    error = pickle.loads(pickle.dumps(UnknownColumnError("no.", "a feature", ["a,b"])))
    assert (str(error), error.role, error.close) == ("no.", "a feature", ("a,b",))


ADDRESSES = [
    "postgresql+psycopg2://bob:pass/wörd@h/db",
    "mysql://bob:pass@wörd@h/db",
    "https://bob:wörd@h:80/x.parquet",
    "s3://key:a/wörd+b@bucket/x.csv",
    "/folder/postgresql:/bob:wörd@h/db",
    "host=h user=bob password=wörd dbname=x",
    "host=h password='a wörd' dbname=x",
    "postgresql://h/db?user=bob&sslpassword=wörd&mode=x",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_message_holds_a_password(address):
    error = DataError(f"there is no table at {address!r}; check it.")
    assert "wörd" not in str(error)
    assert "bob" in str(error) or "key" in str(error) or "host" in str(error)
    assert str(error).endswith("check it.")
    message = Message(address, ": raise ", Setting("time_limit"), ".")
    kept = OutOfTimeError(message).args[0]
    assert kept.said(lambda setting: "--time-limit").endswith(": raise --time-limit.")
    assert "wörd" not in kept.said(lambda setting: "--time-limit")


def test_other_messages_stay_as_they_are():
    text = "see https://example.org:80/a and mail a@b: password_variable=PW; write to a@b."
    assert str(DataError(text)) == text
