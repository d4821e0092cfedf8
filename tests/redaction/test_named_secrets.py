"""What a name calls a secret is masked, however a language writes it; what only looks like that is not."""

from __future__ import annotations

from string import ascii_letters

import pytest

from context_builder.redaction import SecretRedactor
from context_builder.redaction.secret_values import NameKind, kind_of_name
from tests.redaction.tokens import HEX, LOWER, token, uuid

REDACTOR = SecretRedactor()
RANDOM = token("", 30, LOWER)
PASSWORD = "m{{h}o)p${e]nob(ody[finds>-_$#it}}"  # as hostile as people choose them

WRITTEN = {
    "Go": 'apiToken := "{}"',
    "Go, typed": 'var apiToken string = "{}"',
    "Go, raw": "apiToken := `{}`",
    "C": 'char secret[40] = "{}";',
    "C++": 'std::string apiSecret("{}");',
    "C++, assigned": 'secret.assign("{}", 17);',
    "C#": 'string apiToken = @"{}";',
    "Java": 'String apiToken = "{}";',
    "Kotlin": 'val apiToken: String = "{}"',
    "Rust": 'let api_token = String::from("{}");',
    "PHP": '$apiToken .= "{}"',
    "PHP, array": "'api_token' => '{}',",
    "Python": 'API_TOKEN: Final = "{}"',
    "Python, item": 'headers["X-Api-Key"] = "{}"',
    "preprocessor": '#define API_TOKEN "{}";',
    "compared": 'if (apiToken !== "{}") return',
    "compared, the other way round": 'if ("{}" == password) return',
    "default": 'getenv("api_token", "{}")',
    "constant": 'define("API_TOKEN", "{}", true);',
    "JSON": '{{"api_token": "{}"}}',
    "JSON in JSON": '"{{\\"api_token\\": \\"{}\\"}}"',
    "JSON entry": '{{"name": "API_TOKEN", "value": "{}"}}',
    "YAML": "api_token: {}",
    "YAML, literal": "api_token: |\n  {}",
    "YAML, entry": "- name: API_TOKEN\n  value: {}",
    "YAML, list": "api_tokens:\n  - none\n  - {}",
    "TOML": "api-token = '{}'",
    "XML": "<apiToken>{}</apiToken>",
    "XML, lines": "<apiToken>\n    {}\n</apiToken>",
    "XML, attribute": '<add key="ApiToken" value="{}" />',
    "XML, entry": "<entry>\n  <key>api_token</key>\n  <value>{}</value>\n</entry>",
    "Dockerfile": "ENV API_TOKEN {}",
    "shell": "export API_TOKEN={}",
    "make": "API_TOKEN ?= {}",
    "option": "deploy --api-token {}",
    "PowerShell": "Connect-Lab -User ann -ApiToken {}",
    "behind a dash": "api token - {}",
    "behind an arrow": "api token -> {} works",
    "header": "X-Octopus-ApiKey: {}",
    "query": "https://example.org/a?x=1&api_key={}&y=2",
    "connection string": "Server=db;User=sa;Password={};Encrypt=yes",
    "CSV": "apiToken,{},",
    "told below": "here is the token:\n{}",
    "in German": "das Passwort ist {}",
    "in Chinese": "密码：{}",
}

STAYS = (
    "max_tokens = 4096",
    "token_count: 123456",
    'token_type = "Bearer"',
    f"publicKey = {RANDOM}",
    f"csrf-token={RANDOM}",
    f"credentialsId: '{uuid()}'",
    f"kms_key_id = {uuid()}",
    f"password_hash = {token('', 64, HEX)}",
    f'MantleAPI_version="{token("", 40, HEX)}"',
    "sort_key = 'DOC_Vector_5_32'",
    "password = os.environ['DB_PASSWORD']",
    "password = getpass.getpass()",
    "apiKey: this.apiKey,",
    "administrator_login_password = var.db_password",
    "login(username=username, password=password)",
    "token = next_token",
    'password = "${aws_db_instance.default.password}"',
    "password: {{ .Values.password }}",
    'api_key = "<YOUR API KEY>"',
    'api_key: "insert_key_here"',
    'password = "changeme"',
    'password = "somefakepassword"',
    "SUMO_ACCESS_KEY=${SUMO_ACCESS_KEY:=$2}",
    f"ACCESS_KEY={'x' * 40}",
    f'nonMatchingToken := "{RANDOM}"',
    f'<input type="hidden" name="authenticity_token" value="{token("", 64)}" />',
    f"SshPublicKeys:\n  - >-\n  {token('', 64)}",
    'secret = "abcdef0123456789"',
    "api_token: abc-1234567890",
    'password = "prefix_{}".format(name)',
    'loginSecret = "service:" + name + ":" + hash',
    '"db_password": "!Ref \'DbPassword\'"',
    "db_password: <% PASSWORD_HERE %>",
    'label("password", "Password")',
    'confirm("password", "must have 8 signs")',
    "<key>password_hint</key>\n<value>blue2horse</value>",
    "bypass: 4711abc",
    "password - 2FA codes",
    "forgot the password - ticket #12345",
    "new password - 12345678 times",
    "| password | step-1 |",
    "the token -> see page 2024-10-12",
    "-password protected files",
    "Connect-Lab -User ann -Password $password",
    'const password = process.env.DB_PASSWORD || "not-set"',
    'const validKeyChars = "0123456789abcdefghijklmnopqrstuvwxyz_-."',
    "mongodb://user:password@localhost/database",
    "https://{user}:{pass}@example.org",
    "postgresql://user:user@localhost/db",
    "docker run -u 1000:1000 nginx",
    'log.info("password: " + hint + "!");',
    "echo 'token = '.$config['token'].'x1y2';",
    '"/docs/creating-a-strong-password":"/docs/server@3.0/auth"',
    '"password": "&lt;YOURPASSWORD&gt;"',
    'this.addPassword = "#add-password";',
    "pwd = (char *) (p + ulen + 2);",
    "docker login --password-stdin $account.dkr.ecr.amazonaws.com",
    "secretary: Ann of room 12b45678",
    "the token economy: 2024-10-12",
    "they pass: AB-7704 is next",
    "the tokens are counted, and the key is under the mat",
    "# Secrets\n\nthe password:\nis told to nobody",
    f"-----BEGIN CERTIFICATE-----\n{token('MIID', 60)}\n-----END CERTIFICATE-----",
)


@pytest.mark.parametrize("language", WRITTEN)
@pytest.mark.parametrize("value", [RANDOM, uuid(), token("", 40, HEX), token("", 24, ascii_letters)])
def test_a_named_value_is_masked(language, value):
    written = WRITTEN[language].format(value)
    before, _, after = written.partition(value)
    assert REDACTOR.redact(written) in {f"{before}§§secret({kind}){after}" for kind in ("KEY", "PASSWORD")}


@pytest.mark.parametrize(
    "written",
    [
        'password = "{}"',
        "db_pass: '{}'",
        "passwd := {},",
        'if (db_pass != "{}")',
        'password "{}";',
        "PGPASSWORD={} psql",
        "machine example.org\n  login ann\n  password {}",
        'new NetworkCredential("ann", "{}");',
        "postgres://ann:{}@db/shop",
        "curl -u ann:{} https://example.org",
    ],
)
def test_a_password_may_have_any_sign(written):
    assert "finds" not in REDACTOR.redact(written.format(PASSWORD))


@pytest.mark.parametrize(
    "written", ["wifi password - {}", "pw -> {}", "password ---- {}", "| password | {} |", "Connect-Lab -Password {}"]
)
def test_a_password_behind_a_dash_is_a_word_of_letters_and_digits(written):
    assert "rain4u" not in REDACTOR.redact(written.format("rain4u!lab"))


@pytest.mark.parametrize("text", STAYS)
def test_what_is_no_secret_stays(text):
    assert REDACTOR.redact(text) == text


def test_the_data_of_a_kubernetes_secret_is_masked():
    manifest = "kind: Secret\ndata:\n  # base64\n  a: YWRtaW46cGFzc3dvcmQ=\n  b: YWRtaW4=\nmetadata:\n  name: c\n"
    assert REDACTOR.redact(manifest) == manifest.replace("YWRtaW46cGFzc3dvcmQ=", "§§secret(KEY)")


def test_a_value_is_masked_to_its_end_however_long():
    long = token("", 9_000)
    assert REDACTOR.redact(f"password={long} it is") == "password=§§secret(PASSWORD) it is"
    assert REDACTOR.redact(f'token = "{long}"').count(long[-20:]) == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dbPassword", NameKind.PASSWORD),
        ("SLAPIKEY", NameKind.TOKEN),
        ("SharedAccessKey", NameKind.TOKEN),
        ("aws_secret_access_key", NameKind.TOKEN),
        ("door_key", NameKind.KEY),
        ("key_down_event", NameKind.HARMLESS),
        ("tokenizer", NameKind.UNKNOWN),
        ("passenger", NameKind.UNKNOWN),
        ("monkey", NameKind.UNKNOWN),
        ("token_expires_at", NameKind.HARMLESS),
        ("foreignKey", NameKind.HARMLESS),
        ("keyVaultName", NameKind.HARMLESS),
    ],
)
def test_a_name_tells_what_it_has(name, kind):
    assert kind_of_name(name) == kind


@pytest.mark.parametrize(
    "text",
    [
        *("| user | Password |\n|---|---|\n| ann | {} |", "host,user,password,port\ndb,ann,{},5432\ndb2,bob,{},5432"),
        *("user;api token\n\nann;'{}'", "User\tPassword\nann\t{}", "| **Wi-Fi password** | of |\n|-|-|\n| `{}` | 2 |"),
        *("<tr><th>Password:</th><td>{}</td></tr>", "## Password\n\n{}", "Password\n: {}", "User\nann\nPassword\n{}"),
        *("<dt>Password</dt><dd>{}</dd>", "<name>password</name><value>{}</value>", "[password]\nvalue={}"),
        *("**Password**: `{}`", "**Password:** {}", "Password::\n  {}", "The password below:\n\n    {}"),
        *('{{"k": "password", "v": "{}"}}', "our password ({})", "the wifi password {}", "pass phrase - {}"),
        *('"password","{}"', "password;{}", '["password", "{}"]', "key,value\nuser,ann\npassword,{}"),
        *("<div>password</div><div>{}</div>", "<li>Password:</li><li>{}</li>", "<p>Password: <code>{}</code></p>"),
        *("<tr>\n<td>password</td>\n<td>{}</td>\n</tr>", "password: [{}](https://x.example)", "[password: {}](/a)"),
        "<tr><th>user</th><th>password</th></tr><tr><td>ann</td><td>{}</td></tr>",
        "<tr><th>user</th><th>password</th></tr>\n<tr><td>ann</td><td>{}</td></tr>\n<tr><td>bob</td><td>{}</td></tr>",
        *(
            "password:\n```\n{}\n```",
            "password:\n\n~~~text\n{}\n~~~",
            'Content-Disposition: form-data; name="password"\n\n{}',
        ),
        *('password =\n    "{}"', 'password = \\\n    "{}"', 'password = (\n    "{}"\n)'),
        "Ann: What is the password?\nBob: {}",
    ],
)
def test_the_head_of_a_column_and_the_line_above_tell_what_a_password_is(text: str) -> None:
    password = "k4Xr9tQz2wLp"
    shown = SecretRedactor().redact(text.format(password, password))
    assert password not in shown
    assert shown.count("§§secret") == text.count("{}")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "| task | token count |\n|---|---|\n| a1 | model4mini |",
            "name,password,token\nThen, say it42now, again, and on",
        ),
        *(
            "## Password\n\nChange it every 90 days.",
            "Did you change the password?\nBob: yes42, of course",
            "**Passwords:** are long2say (see OAuth2)",
            "the password (see page12)",
            "a password hash of bcrypt12",
            "password,required",
            "Password, rotated2026-01-01",
            '["password", "username2"]',
            "<li>password</li><li>username</li>",
            "<td>password</td>\n<td>required</td>",
            "password:\n```\nnot shown\n```",
            "password = (\n    settings.password\n)",
            "[password](https://x.example/docs) is changed",
            "<tr><th>user</th><th>password</th></tr><tr><td>ann</td><td>required</td></tr>",
            "Passwords\n- are long2say",
            "| secret | key |\n|---|---|\n| none | x |",
        ),
    ],
)
def test_words_in_a_table_are_no_passwords(text: str) -> None:
    assert SecretRedactor().redact(text) == text
