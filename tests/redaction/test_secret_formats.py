"""Keys and tokens are known by their form, whatever stands around them; dummies of the same form are left."""

from __future__ import annotations

import time
import zlib
from base64 import urlsafe_b64encode

import pytest

from context_builder.redaction import SecretRedactor
from context_builder.redaction.secret_patterns import has_checksum, secret_formats
from tests.redaction.tokens import HEX, LOWER, WORD, token, uuid

REDACTOR = SecretRedactor()

TOKENS = {
    "age": token("AGE-SECRET-KEY-1", 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    "Airtable": token("pat", 14) + "." + token("", 64, HEX),
    "Anthropic": token("sk-ant-api03-", 93, suffix="AA"),
    "Artifactory": token("AKCp", 69),
    "Atlassian": token("ATATT3", 186),
    "AWS": token("AKIA", 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "Azure AD": token("aB1", 0) + "8Q~" + token("", 34),
    "Brevo": token("xkeysib-", 64, HEX) + "-" + token("", 16),
    "Clojars": token("CLOJARS_", 60, LOWER),
    "Databricks": token("dapi", 32, HEX),
    "DigitalOcean": token("dop_v1_", 64, HEX),
    "Discord": token("M", 25) + "." + token("x", 5) + "." + token("", 27),
    "Docker Hub": token("dckr_pat_", 27),
    "Doppler": token("dp.pt.", 43),
    "Dynatrace": token("dt0c01.", 24) + "." + token("", 64),
    "Figma": token("figd_", 43),
    "Fly.io": token("fm2_", 120),
    "GitHub": token("ghs_", 36),
    "GitHub, fine-grained": token("github_pat_", 82),
    "GitLab": token("glpat-", 20),
    "Google": token("AIza", 35),
    "Grafana": token("glsa_", 32) + "_" + token("", 8, HEX),
    "Heroku": token("HRKU-AA", 58),
    "Hugging Face": token("hf_", 34),
    "Linear": token("lin_api_", 40),
    "Mailchimp": token("", 32, HEX, suffix="-us12"),
    "Netlify": token("nfp_", 36),
    "New Relic": token("NRAK-", 27, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
    "Notion": token("ntn_", 11, "0123456789") + token("", 35),
    "npm": token("npm_", 36),
    "1Password": "-".join(token("A3-" if not place else "", 6, "ABCDEFGHJK23456789") for place in range(2))
    + "".join("-" + token(str(place), 5, "ABCDEFGHJK23456789")[1:] for place in range(4)),
    "1Password service account": token("ops_eyJ", 250),
    "OpenAI": token("sk-proj-", 58) + "T3BlbkFJ" + token("", 58),
    "PlanetScale": token("pscale_pw_", 43),
    "Postman": token("PMAK-", 24, HEX) + "-" + token("", 34, HEX),
    "private key without its frame": "MIIEpAIBAAKC" + token("", 200),
    "Pulumi": token("pul-", 40, HEX),
    "PyPI": token("pypi-AgEIcHlwaS5vcmc", 70),
    "SendGrid": token("SG.", 22) + "." + token("", 43),
    "Sentry": token("sntryu_", 64, HEX),
    "Sentry integration": token("sntryi_", 64, HEX),
    "Shopify": token("shpat_", 32, HEX),
    "Slack": "xoxb-" + token("", 12, "123456789") + "-" + token("", 24),
    "Sonar": token("squ_", 40),
    "Buildkite cluster": token("bkct_", 73),
    "Buildkite job": token("bkaj_", 120) + "." + token("", 200) + "." + token("", 43),
    "Sourcegraph": token("sgp_", 16, HEX) + "_" + token("", 40, HEX),
    "Sourcegraph gateway": token("sgd_", 64, HEX),
    "Square": token("sq0csp-", 43),
    "Stripe": token("rk_live_", 24),
    "Supabase": token("sbp_", 40, HEX),
    "Tailscale": token("tskey-auth-", 12) + "-" + token("", 32),
    "Telegram": "8123456789:" + token("AA", 33),
    "Telegram, shorter": "8123456789:" + token("AA", 32),
    "Terraform": token("", 14) + ".atlasv1." + token("", 67),
    "Twilio": token("SK", 32, HEX),
    "Vault": token("hvs.", 95),
}

IN_CONTEXT = {
    f"SONAR_LOGIN = {token('', 40)}": token("", 40),
    f'const HEROKU_KEY = "{uuid()}"': uuid(),
    f'SNYK_KEY ?= "{uuid()}"': uuid(),
    f"sumologic_access_id: {token('su', 12)}": token("su", 12),
    f"Authorization: Basic {token('', 24)}": token("", 24),
    f'curl -H "Authorization: Token {token("", 40, HEX)}" https://api.example.org': token("", 40, HEX),
    f"curl -L -H 'Authorization: {uuid()}' localhost": uuid(),
    f"//npm.lab.example/:_authToken={uuid()}": uuid(),
    f"https://discord.com/api/webhooks/123456789012345678/{token('', 68)}": token("", 68),
    f"https://a.webhook.office.com/webhookb2/{uuid()}@{uuid()}/IncomingWebhook/{token('', 32)}/{uuid()}": token("", 32),
    f"https://outlook.office.com/webhook/{uuid()}@{uuid()}/IncomingWebhook/{token('', 32)}/{uuid()}": token("", 32),
    f'postmark: "{uuid()}",': uuid(),
    f'$sonarLogin = "{token("", 40, HEX)}"': token("", 40, HEX),
    "psexec \\\\lab7 -u ann -p open_door cmd": "open_door",
    "sqlcmd -S lab7 -U ann -P open_door": "open_door",
    "ldapsearch -x -D cn=ann -w open_door -b dc=lab": "open_door",
    "mongosh shop --port 27017 -u ann -p open_door": "open_door",
    "openssl pkcs12 -in a.p12 -passin pass:open_door": "open_door",
    f"https://files.blob.core.windows.net/a?sv=2024&sig={token('', 44)}%3D": token("", 44),
    f"mysql -uroot -p{token('', 9)} shop": token("", 9),
    f"machine example.org login ann password {token('', 9)}": token("", 9),
}

DUMMIES = (
    "ghp_" + "x" * 36,
    "github_pat_" + "x" * 22 + "_" + "x" * 58,
    "hf_" + "x" * 34,
    "glpat-XXXXXXXXXXX-XXXXXXXX",
    "glsa_" + "X" * 32 + "_AAAAAAAA",
    "A3-XXXXXX-XXXXXXXXXXX-XXXXX-XXXXX-XXXXX",
    "key = AKIA" + "X" * 16,
    "xoxb-my-bot-token",
    "sha256~XXXXXXXXXX_PUT_YOUR_TOKEN_HERE_XXXXXXXXXXXX",
    "sk-your-api-key-goes-right-here-0000",
    "curl -H 'Authorization: Bearer $API_KEY' -u $USER:$PASSWORD",
    "Authorization: Bearer <your token>",
    "//npm.lab.example/:_authToken=${NPM_TOKEN}",
    "- (id)hf_requiredCharacteristicTypesForDisplayMetadata;",
    "scikit-learn is sk-learn-compatible-estimators to many",
    "s.AcceptanceTimeoutSeconds",
    "psexec \\\\lab7 -u ann -p %PASSWORD% cmd",
    "mongo is a database, and -p asks for its password",
    "openssl pkcs12 -in a.p12 -passin pass:$PASSWORD",
    "on Postmark, see the message " + uuid(),
    "image: aws-cli@sha256:" + token("", 64, HEX),
    "commit " + token("", 40, HEX),
    "on Sourcegraph, see commit " + token("", 40, HEX),
    "the Heroku dyno with the id " + uuid(),
    "trace " + uuid(),
    "integrity: sha512-" + token("", 86) + "==",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA" + token("", 44) + " ann@laptop",
)


@pytest.mark.parametrize("vendor", TOKENS)
@pytest.mark.parametrize(
    "around", ["{}", "use {} for now", '("{}");', "a=\\n{}\\n", "https://x.example/?t%3D{}%26", "密钥{}。"]
)
def test_a_token_is_masked_by_its_form(vendor, around):
    redacted = REDACTOR.redact(around.format(TOKENS[vendor]))
    assert TOKENS[vendor] not in redacted
    assert redacted.startswith(around.partition("{}")[0])


@pytest.mark.parametrize("vendor", TOKENS)
@pytest.mark.parametrize("text", ['API_TOKEN="{}"', "export DEPLOY_TOKEN={}", '"access_token": "{}",'])
def test_a_token_of_the_wrong_length_is_masked_where_a_name_calls_it_one(vendor, text):
    whole = TOKENS[vendor]
    for damaged in (whole[:-1], whole[:-4], whole[:-9] + whole[-8:], whole + "k"):
        redacted = REDACTOR.redact(text.format(damaged))
        assert damaged[-8:] not in redacted
        assert redacted.startswith(text.partition("{}")[0])


@pytest.mark.parametrize("text", IN_CONTEXT)
def test_what_has_no_form_of_its_own_is_known_by_what_stands_before_it(text):
    assert IN_CONTEXT[text] not in REDACTOR.redact(text)
    assert REDACTOR.redact(IN_CONTEXT[text]) == IN_CONTEXT[text] or len(IN_CONTEXT[text]) >= 32


@pytest.mark.parametrize("text", DUMMIES)
def test_dummies_digests_and_ids_stay(text):
    assert REDACTOR.redact(text) == text


def test_a_json_web_token_begins_with_json():
    payload = urlsafe_b64encode(b'{"sub": "ann"}').decode().rstrip("=") + "." + token("", 43)
    for header, is_token in (('{"alg": "HS256"}', True), ('{"alg": "HS256"', False), ('{"alg" + "HS256"}', False)):
        text = urlsafe_b64encode(header.encode()).decode().rstrip("=") + "." + payload
        assert (REDACTOR.redact(text) == "§§secret(JSON_WEB_TOKEN)") is is_token


def test_a_right_checksum_outweighs_a_low_entropy():
    checksum, digits_of_62 = zlib.crc32(b"a" * 30), "0123456789" + WORD[26:52] + WORD[:26]
    written = ""
    for _ in range(6):
        checksum, digit = divmod(checksum, 62)
        written = digits_of_62[digit] + written
    assert has_checksum("ghp_" + "a" * 30 + written)
    assert REDACTOR.redact("npm_" + "a" * 30 + written) == "§§secret(NPM_TOKEN)"
    assert REDACTOR.redact("npm_" + "a" * 36) == "npm_" + "a" * 36


def test_each_format_names_its_source_and_is_found_by_a_keyword():
    for form in secret_formats():
        assert form.keywords
        assert all(keyword == keyword.lower() for keyword in form.keywords), form.kind
        assert form.compiled.groups <= 1, form.kind
    assert len(secret_formats()) > 150


@pytest.mark.slow
@pytest.mark.parametrize("form", secret_formats(), ids=lambda form: form.kind)
def test_no_format_takes_long_on_text_made_of_its_keywords(form):
    units = [
        unit for word in form.keywords[:3] for unit in (word, word.upper() + "-", f"/{word}", f"{word}=", word + ".")
    ]
    started = time.process_time()
    for unit in units:
        REDACTOR.redact(unit * (5_000 // len(unit)))
    assert time.process_time() - started < 0.12 * len(units)
