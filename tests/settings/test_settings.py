"""Settings: where they come from, and that every wrong one names itself and gives no secret away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import context_builder
from context_builder.assembly.config import AssemblyConfig
from context_builder.cli.settings import example_env
from context_builder.errors import SettingError
from context_builder.session.config import SessionConfig
from context_builder.settings.settings import Settings, definitions, load_settings
from tests.services.postgrest import api_key

SECRETS = {
    "REDIS_URL": "redis://:hunter2@cache:6379/0",
    "REDIS_PASSWORD": "hunter2",
    "SUPABASE_URL": "https://project.supabase.co",
    "SUPABASE_KEY": "sb_secret_hunter2",
    "DATABASE_URL": "postgresql://writer:hunter2@db:5432/archive",
    "OPENAI_API_KEY": "sk-hunter2",
    "EMBEDDING_API_KEY": "sk-hunter2",
    "KNOWLEDGE_SERVICE_TOKEN": "cbk_hunter2",
}


def load(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


def fault(**environ: str) -> str:
    with pytest.raises(SettingError) as wrong:
        load(**environ)
    assert "\n" not in str(wrong.value)
    return str(wrong.value)


def test_the_defaults_are_the_documented_ones() -> None:
    settings = load()
    session, tasks = settings.session, settings.tasks
    assert (session.tick, session.buffer_window, session.buffer_max) == (0.5, 120, 1000)
    assert (session.domain_messages, session.domain_interval) == (5, 30)
    assert (session.silence, session.summary_keep_last, session.consilience_max) == (4.0, 0, 100)
    assert (session.state_ttl, session.conversation_state_ttl) == (3600, 10)
    assert (tasks.keyword_model, tasks.keyword_temperature, tasks.keyword_max_tokens) == ("gpt-4o-mini", 0.2, 100)
    assert (tasks.domain_model, tasks.domain_temperature, tasks.domain_max_tokens) == ("gpt-4o-mini", 0.2, 400)
    assert (tasks.summary_model, tasks.summary_temperature, session.summary_budget) == ("gpt-4o", 0.3, 1000)
    assert (settings.redis.port, session.max_message_bytes) == (6379, 262_144)
    assert settings.process.session_retention == 604_800


def test_what_nobody_set_is_as_each_part_has_it_by_itself() -> None:
    assert (load().session, load().assembly) == (SessionConfig(), AssemblyConfig())


# Where they come from


def test_the_environment_wins_over_the_file_and_an_argument_over_both(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("POLL_INTERVAL=0.1\nSILENCE_THRESHOLD=1\nSTATE_TTL=60\n")
    environ = {"POLL_INTERVAL": "0.2", "SILENCE_THRESHOLD": "2"}
    settings = load_settings(environ, env_file=file, poll_interval=0.3)
    assert (settings.session.tick, settings.session.silence, settings.session.state_ttl) == (0.3, 2, 60)


def test_an_argument_that_is_no_setting_is_a_mistake() -> None:
    with pytest.raises(SettingError, match="pol_interval: unknown setting; did you mean CONTEXT_BUILDER_POLL_INTERVAL"):
        load_settings({}, env_file=None, pol_interval=1)


def test_a_wrong_argument_names_its_setting() -> None:
    with pytest.raises(SettingError, match=r"^POLL_INTERVAL: "):
        load_settings({}, env_file=None, poll_interval="often")


def test_the_prefixed_name_wins_over_the_plain_one() -> None:
    assert load(POLL_INTERVAL="0.1", CONTEXT_BUILDER_POLL_INTERVAL="0.2").session.tick == 0.2


def test_the_environments_plain_name_wins_over_the_files_prefixed_one(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CONTEXT_BUILDER_POLL_INTERVAL=0.1\n")
    assert load_settings({"POLL_INTERVAL": "0.2"}, env_file=tmp_path / ".env").session.tick == 0.2


def test_an_empty_value_counts_as_not_set() -> None:
    assert load(REDIS_URL="", POLL_INTERVAL="").session.tick == 0.5


def test_the_users_home_is_not_the_engines_home() -> None:
    assert load(HOME="/home/alice").process.home is None
    assert load(CONTEXT_BUILDER_HOME="/data").process.home == Path("/data")


def test_names_of_other_programs_are_let_be() -> None:
    assert load(POL_INTERVAL="x", LANG="C", SUPABASE_ACCESS_TOKEN="x").session.tick == 0.5


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().session = SessionConfig()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        load().session.tick = 1.0  # type: ignore[misc]


# What is wrong with them


@pytest.mark.parametrize("value", ["often", "-1", "0", "nan", "inf", "1e300"])
@pytest.mark.parametrize("name", ["POLL_INTERVAL", "RAW_BUFFER_TIME_WINDOW", "LLM_TIMEOUT", "STATE_TTL"])
def test_times_are_positive_numbers_of_seconds(name: str, value: str) -> None:
    assert fault(**{name: value}).startswith(f"{name}: ")


@pytest.mark.parametrize("value", ["many", "-5", "0", "2.5"])
@pytest.mark.parametrize("name", ["RAW_BUFFER_MAX_MESSAGES", "DOMAIN_INFERENCE_INTERVAL", "SUMMARY_MAX_TOKENS"])
def test_counts_are_whole_numbers_from_one(name: str, value: str) -> None:
    assert fault(**{name: value}).startswith(f"{name}: must be ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SUMMARY_KEEP_LAST", "-1"),
        ("KEYWORD_TEMPERATURE", "2.1"),
        ("REDIS_PORT", "70000"),
        ("HTTP_PORT", "0"),
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
        ("REDIS_URL", "localhost:6379"),
        ("REDIS_URL", "redis://cache:port/0"),
        ("REDIS_URL", "redis://"),
        ("REDIS_URLS", "cache:6379"),
        ("REDIS_URLS", "redis://one:6379/0 redis://two:port/0"),
        ("REDIS_URLS", "redis://one redis://:secret@one:6379/0"),
        ("REDIS_URLS", "redis://one:6379/0?tenant="),
        ("KNOWLEDGE_GRAPH_URL", "http://graph:8643"),
        ("KNOWLEDGE_GRAPH_URL", "grpc://graph"),
        ("MEMORY_POLICY_URL", "grpcs://user@policy:8643"),
        ("DATABASE_URL", "mysql://db/archive"),
        ("OPENAI_BASE_URL", "api.openai.com"),
        ("LLM_PRICES", "[" * 100_000),
        ("CONTEXT_TOP_K", "-1"),
        ("CONTEXT_RECENCY_DAYS", "nan"),
        ("KEYWORD_MODEL", "\ud800"),
        ("REDIS_PORT", "９９"),
    ],
)
def test_every_wrong_value_names_its_setting(name: str, value: str) -> None:
    assert fault(**{name: value}).startswith(f"{name}: ")


def test_a_wrong_value_is_named_as_it_was_spelled() -> None:
    assert fault(CONTEXT_BUILDER_REDIS_PORT="x").startswith("CONTEXT_BUILDER_REDIS_PORT: ")


def test_an_unknown_name_with_our_prefix_is_a_mistake() -> None:
    told = fault(CONTEXT_BUILDER_POL_INTERVAL="1")
    assert told == "CONTEXT_BUILDER_POL_INTERVAL: unknown setting; did you mean CONTEXT_BUILDER_POLL_INTERVAL?"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"SUPABASE_URL": "https://x.supabase.co"}, "SUPABASE_KEY: is missing"),
        ({"SUPABASE_KEY": "sb_secret_x"}, "SUPABASE_URL: is missing"),
        ({"EMBEDDING_MODEL": "e5"}, "EMBEDDING_API_KEY: is missing, and so is OPENAI_API_KEY"),
        ({"REDIS_URLS": "redis://one", "REDIS_URL": "redis://two"}, "REDIS_URLS: is set, and so is REDIS_URL"),
        ({"REDIS_URLS": "redis://one?tenant=a&tenant=b"}, "REDIS_URLS: gives a server to two tenants"),
        ({"POLL_INTERVAL": "10"}, "POLL_INTERVAL: must be below CONVERSATION_STATE_TTL"),
        ({"LEASE_TIME": "1"}, "LEASE_TIME: must be more than twice POLL_INTERVAL"),
        ({"SUMMARY_KEEP_LAST": "1000"}, "SUMMARY_KEEP_LAST: must be below RAW_BUFFER_MAX_MESSAGES"),
    ],
)
def test_settings_that_do_not_go_together_are_told(environ: dict[str, str], told: str) -> None:
    assert fault(**environ).startswith(told)


def test_each_redis_server_has_its_address_and_its_tenant() -> None:
    urls = "redis://:hunter2@one/1, rediss+sentinel://a:1,b:2/main/0?tenant=lab\n unix:///run/redis.sock?tenant=x&db=2"
    settings = load(REDIS_URLS=urls, TENANT_ID="ours")
    each = settings.of_each_server()
    assert [(one.redis.server_name, one.memory.tenant_id) for one in each] == [
        ("one:6379/1", "ours"),
        ("a:1,b:2/main/0", "lab"),
        ("/run/redis.sock/2", "x"),
    ]
    assert [one.redis.url and one.redis.url.get_secret_value() for one in each] == [
        "redis://:hunter2@one/1",
        "rediss+sentinel://a:1,b:2/main/0",
        "unix:///run/redis.sock?db=2",
    ]
    assert "hunter2" not in repr(settings) + settings.model_dump_json()
    assert load().of_each_server() == (load(),)


def test_each_tenants_sessions_are_recorded_apart_so_that_nobody_sees_anothers() -> None:
    urls = "redis://one redis://two?tenant=ours redis://three?tenant=../club redis://four?tenant=.."
    each = load(REDIS_URLS=urls, TENANT_ID="ours", RECORD_DIR="/said").of_each_server()
    folders = [str(one.process.record_dir) for one in each]
    assert folders == ["/said", "/said", "/said/tenant=..%2Fclub", "/said/tenant=.."]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(b"REDIS_HOST=caf\xe9\n")
    with pytest.raises(SettingError, match="is not UTF-8; correct it first"):
        load_settings({}, env_file=file)


@pytest.mark.parametrize("key", [api_key("anon"), "sb_publishable_x"])
def test_an_anon_key_is_named_as_the_fault(key: str) -> None:
    told = fault(SUPABASE_URL="https://x.supabase.co", SUPABASE_KEY=key)
    assert told == "SUPABASE_KEY: is an anon key, which cannot write; use the service key"


@pytest.mark.parametrize("key", [api_key("service_role"), "sb_secret_x", "some.other.key", "plain"])
def test_other_keys_are_taken(key: str) -> None:
    assert load(SUPABASE_URL="https://x.supabase.co", SUPABASE_KEY=key).archive.supabase_key


# Secrets


def test_secrets_are_never_shown() -> None:
    settings = load(**SECRETS)
    for shown in (repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump())):
        assert "hunter2" not in shown


@pytest.mark.parametrize(
    "environ",
    [
        {"REDIS_URL": "http://:hunter2@cache"},
        {"REDIS_URL": "redis://:hunter2@cache:port/0"},
        {"REDIS_URL": "redis://:hunter2[@cache/0"},
        {"REDIS_URLS": "redis://:hunter2@cache:port/0"},
        {"REDIS_URLS": "redis://:hunter2@cache redis://:hunter2@cache"},
        {"DATABASE_URL": "mysql://writer:hunter2@db"},
        {"SUPABASE_URL": "https://x.supabase.co", "SUPABASE_KEY": "sb_publishable_hunter2"},
        {**SECRETS, "POLL_INTERVAL": "often"},
    ],
)
def test_errors_do_not_repeat_a_secret(environ: dict[str, str]) -> None:
    assert "hunter2" not in fault(**environ)


# .env.example


def test_the_example_is_the_generated_one() -> None:
    file = Path(context_builder.__file__).parents[1] / ".env.example"
    assert file.read_text(encoding="utf-8") == example_env(), "run: context-builder settings --env > .env.example"


def test_the_example_lists_every_setting_with_its_default_and_a_reason() -> None:
    example = example_env()
    for name, setting in definitions().items():
        default = "" if setting.default is None else setting.default
        assert f"\n# {setting.description}\n#{name}={default}\n" in example
        assert setting.description


def test_every_name_is_declared_once() -> None:
    groups = (type(part.default) for part in Settings.model_fields.values())
    declared = [field.title for group in groups for field in group.__pydantic_fields__.values()]
    assert sorted(filter(None, declared)) == sorted(definitions())


@pytest.mark.parametrize("name", definitions())
def test_a_description_stands_alone(name: str) -> None:
    clause = re.split("[;,.:]", definitions()[name].description)[0]
    assert not re.search(r"\b(it|its|they|them)\b", clause, re.IGNORECASE)


def test_the_example_can_be_used_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(re.sub(r"^#(?! )", "", example_env(), flags=re.MULTILINE), encoding="utf-8")
    assert load_settings({}, env_file=tmp_path / ".env") == load()
