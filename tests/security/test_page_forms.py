"""Forms of the page lead nowhere but into the page, by the way that the browser came."""

from __future__ import annotations

from uuid import uuid4

import pytest

from context_builder.server.access.caller import Role
from tests.server.page.conftest import logged_in, token_in
from tests.services.api_server import ApiServer


@pytest.mark.engines
async def test_a_form_behind_a_proxy_with_tls_does_not_lead_out_of_it(api: ApiServer) -> None:
    name, said = f"proxied-{uuid4().hex[:8]}", {"text": "The kelp grows.", "speaker": "Ann"}
    async with api.client(api.key(Role.WRITER)) as listener, api.client() as page:
        assert (await listener.post(f"/sessions/{name}/messages", json=said)).status_code == 202
        await logged_in(api, page, api.key(Role.WRITER))
        token = token_in((await page.get("/ui/packages")).text)
        form = {"csrf": token, "what": "correct", "message": "1", "text": "It does not."}
        answer = await page.post(f"/ui/sessions/{name}/revisions", data=form, headers={"Origin": api.url})
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/ui/sessions/{name}/revisions?done=correct")
