"""What looks like a key, a token or a password is found; ordinary text is not."""

import sysconfig
from pathlib import Path

import pytest

from dg_lsp.context.definitions import context_of
from dg_lsp.context.index import Index
from dg_lsp.context.retrieve import search
from dg_lsp.context.secrets import has_secret, is_key, redacted, secrets_in
from dg_lsp.gaps.find import find_gap
from dg_lsp.source.document import Document

# No key of these was ever one; a scanner of this repository should not think so either, so they are put together.
SECRETS = (
    'AWS_KEY_ID = "AKIA' + 'EXAMPLEEXAMPLE0"',
    'aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY' + 'EXAMPLEKEY"',
    'x = "gh' + 'p_16C7e42F292c6912E7710c838347Ae178B4a"',
    'x = "github' + '_pat_11ABCDEFG0aBcDeFgHiJkL_mnopqrstuvwxyz"',
    'slack("xox' + 'b-123456789012-abcdefghijkl")',
    'stripe.api_key = "sk' + '_live_4eC39HqLyjWDarjtT1zdp7dc"',
    'a = "sk' + '-proj-abcDEF123456ghiJKL7890mno"',
    'a = "sk' + '-ant-api03-abcDEF-123_ghi456jkl"',
    'g = "AI' + 'zaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"',
    'l = "gl' + 'pat-ABCdef123456ghijkl78"',
    'n = "np' + 'm_abcdefghijklmnop0123456789ABCDEFghij"',
    'h = "hf' + '_abcdEFGHijklMNOPqrstUVWXyz012345"',
    'p = "-----BEGIN RSA ' + 'PRIVATE KEY-----\\nMIIEow"',
    'j = "eyJhbGciOiJIUzI1NiJ9.' + 'eyJzdWIiOiIxMjM0In0.abc"',
    'DATABASE_URL = "postgres://app:hunter2@db.example/app"',
    'u = "redis://:p4ssw0rd@localhost:6379/0"',
    'c = "Server=db;User Id=sa;Password=Sup3rS3cret;"',
    'dsn = "host=db password=hunter2 user=app"',
    'dsn = "host=db;password=swordfish"',
    'password = "hunter2-correct-horse"',
    'PASSWORD: str = "correct horse battery staple"',
    "db_password='swordfish'",
    '{"password": "hunter2"}',
    "clientSecret: 'abc-def-ghi'",
    "const apiKey = `my-key-77`;",
    'if password == "opensesame":',
    'user.set_password("opensesame")',
    'os.environ.get("DB_PASSWORD", "hunter2")',
    'os.getenv("API_KEY", default="q9w8e7r6")',
    '#define DB_PASSWORD "hunter2"',
    'static const char secret_key[] = "zzyzx";',
    'const PASSWORD: &\'static str = "plover";',
    'k = "3f786850e387550fdab836ed7e6dc881de23001b9a8b"',
    'k = "q7Xz9Lm2Rt4Wv8Yb1Nc6Kd3Hf5Jg0Ps"',
    'h = {"Authorization": "Bearer abc123def456ghi789"}',
    'token = "9f8e7d6c5b4a"',
    'auth = ("ann", "hunter2")',
    "requests.get(url, auth=('ann', 'hunter2'))",
    'auth=HTTPBasicAuth(user, "hunter2")',
    'smtp.login("ann@example.org", "hunter2")',
    'password = "pass" + "word" + "77"',
    "API_KEY = 'q7Xz9Lm2Rt' '4Wv8Yb1Nc6Kd3Hf5Jg0Ps'",
    'x = "AK" + "IAEXAMPLE" + "EXAMPLE0"',
)
ORDINARY = (
    'password = "password"',
    'password = getpass("Password: ")',
    'PASSWORD_FIELD = "password"',
    'password = ""',
    'password = "<password>"',
    'password = f"{user}"',
    'password = os.environ["PASSWORD"]',
    'help = "The password of the user"',
    '"password": "Your password must be long"',
    'token = "IDENT"',
    'token_url = "https://example.com/oauth/token"',
    'key = "user_id_2"',
    'hash = "blake2b-256"',
    'x = "application/vnd.openxmlformats-officedocument"',
    'x = "getElementsByTagNameNS2WithOptions"',
    'x = "123e4567-e89b-12d3-a456-426614174000"',
    'x = "abcdefghijklmnopqrstuvwxyz"',
    'x = "test_that_the_thing_2_works_in_1999"',
    'x = "sk-folding-cube-container-outer"',
    'response_type = "id_token"',
    "call(unk_token=unk_token, password=self.password)",
    'headers["Authorization"] = f"Bearer {token_in(path)}"',
    'u = "https://user@example.com/a:b"',
    'u = "%Y-%m-%dT%H:%M:%S.%fZ"',
    'auth = ("user", "password")',
    'login("name", "value")',
    'help = ("The password of "\n    "the user")',
    'x = "a-long-name" + "-of-some-file" + ".txt"',
)


@pytest.mark.parametrize("line", SECRETS)
def test_a_key_a_token_and_a_password_are_found(line: str) -> None:
    assert secrets_in(line), line
    assert redacted(line) != line and not secrets_in(redacted(line))
    data = f"a = 1\n{line}\nb = 2\n".encode()
    (start, stop), *_ = secrets_in(line)
    assert has_secret(data, 6 + start, 6 + stop) and not has_secret(data, 0, 5)


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_text_is_not(line: str) -> None:
    assert not secrets_in(line) and redacted(line) == line


def test_a_name_that_is_a_key_is_distinguished_from_others() -> None:
    assert is_key("gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a")
    assert not is_key("find_the_longest_common_prefix_of_2_texts")


def test_the_inside_of_a_private_key_is_a_secret() -> None:
    lines = "\n".join("MIIEowIBAAKCAQEAfoobarbazquxquuxcorge" for _ in range(40))
    data = (
        f"KEY = '''-----BEGIN EC PRIVATE KEY-----\n{lines}\n-----END EC PRIVATE KEY-----'''\nx = 1\n".encode()
    )
    at = data.index(b"MIIE", 900)
    assert has_secret(data, at, at + 20) and not has_secret(data, data.index(b"x = 1"), len(data))


def found(text: str, other: str, own: str = "") -> list[str]:
    index = Index()
    index.put("file:///p/other.py", "python", other.encode())
    document = Document("file:///p/own.py", "python", 1, f"{own}{text}\n".encode())
    return [one.text for one in search(document, find_gap(document, len(document.data) - 1), index).texts]


@pytest.mark.parametrize("line", [line for line in SECRETS if line.partition(" = ")[0].isidentifier()])
def test_no_secret_of_another_file_is_retrieved(line: str) -> None:
    name, _, value = line.partition(" = ")
    assert found(f"{name} = ", line + "\n") == []
    # The same text in the file itself goes to the model anyway.
    assert value in " ".join(found(f"{name} = ", line + "\n", own=f"{line}\n\n"))


def test_ordinary_strings_beside_a_secret_are_retrieved() -> None:
    other = 'password = "hunter2"\nregion = "eu-west-1"\n'
    assert found("region = ", other) == ['"eu-west-1"']
    assert "hunter2" not in " ".join(found("password = ", other))


def test_definitions_are_sent_without_their_secrets() -> None:
    index = Index()
    other = 'class Store:\n    password = "hunter2"\n    region = "eu"\n\n    def get(self):\n        pass\n'
    index.put("file:///p/store.py", "python", other.encode())
    own = Document(
        "file:///p/own.py", "python", 1, b"import store\n\n\ndef f():\n    store.Store()\n    x = 1\n"
    )
    (piece,) = context_of(own, find_gap(own, len(own.data) - 1), index, 4_000).pieces
    assert 'password = "..."' in piece.text and 'region = "eu"' in piece.text


def test_strings_of_ordinary_code_are_rarely_taken_for_secrets() -> None:
    folder, lines, dropped = Path(sysconfig.get_path("stdlib")), 0, 0
    for path in sorted(folder.glob("[a-h]*.py"))[:60]:
        text = path.read_text(encoding="utf-8", errors="replace")
        hidden = secrets_in(text)
        lines += text.count("\n")
        dropped += len({text.count("\n", 0, start) for start, _ in hidden})
    assert lines > 10_000 and dropped <= lines * 0.005


def test_long_lines_take_no_long_time() -> None:
    # Each of these once made a pattern try every end for every beginning.
    for piece in (
        "password",
        "a",
        "_a",
        "a.",
        "'",
        "key: ",
        "sk-",
        "://a:",
        '"x',
        "-----BEGIN PRIVATE KEY-----",
        " ",
    ):
        secrets_in(piece * (8_000 // len(piece)))
