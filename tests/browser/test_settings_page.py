"""The page Settings in a browser: a form is sent, what is wrong stands beside its field."""

import pytest
from playwright.async_api import Browser, expect

from tests.support.page_harness import page_harness
from tillbridge.core.errors import ConfigError

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


async def test_alerts_are_set_up_without_a_script(browser: Browser) -> None:
    async with page_harness() as harness:
        context = await browser.new_context(java_script_enabled=False)
        page = await context.new_page()
        await page.goto(harness.url + "/settings")
        await page.get_by_role("link", name="Alerts Who is notified").click()
        await page.get_by_label("Send alerts to").fill("anna@example.com")
        await page.get_by_label("Password at the mail server").fill("mail-server-password-17")

        harness.control.settings.refused = ConfigError(
            "This field is required too.", field="alerts.email.sender"
        )
        await page.get_by_role("button", name="Save", exact=True).click()
        sender = page.get_by_label("From")
        await expect(sender).to_have_attribute("aria-invalid", "true")
        await expect(page.get_by_role("alert")).to_contain_text("This field is required too.")
        await expect(page.get_by_label("Send alerts to")).to_have_value("anna@example.com")
        assert "mail-server-password-17" not in await page.content()

        harness.control.settings.refused = None
        await sender.fill("bridge@example.com")
        await page.get_by_role("button", name="Save and restart").click()
        await expect(page.locator(".flash.good")).to_be_visible()
        told = [each for each in harness.control.asked if each[0] == "settings change"]
        ((_what, section, _store, form, digest, restart),) = told
        assert (section, digest, restart) == ("alerts", "d1", True)
        assert isinstance(form, dict)
        assert form["alerts.email.sender"] == "bridge@example.com"
        await context.close()


async def test_opening_hours_are_saved_and_a_mistake_stands_beside_its_day(
    browser: Browser,
) -> None:
    async with page_harness() as harness:
        context = await browser.new_context(java_script_enabled=False)
        page = await context.new_page()
        await page.goto(harness.url + "/settings")
        await page.get_by_role("link", name="Opening hours When you are open").click()
        await page.get_by_label("Friday").fill("noon")
        harness.control.settings.refused = ConfigError("No time.", field="day.friday")
        await page.get_by_role("button", name="Save", exact=True).click()
        friday = page.get_by_label("Friday")
        await expect(friday).to_have_attribute("aria-invalid", "true")
        await expect(friday).to_have_value("noon")
        harness.control.settings.refused = None
        await friday.fill("18-2")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator(".flash.good")).to_be_visible()
        ((_what, store, form, digest),) = [
            each for each in harness.control.asked if each[0] == "hours change"
        ]
        assert (store, digest) == ("main", "d1")
        assert isinstance(form, dict)
        assert form["day.friday"] == "18-2"
        await context.close()


async def test_a_form_that_a_hand_edit_overtook_shows_the_file(browser: Browser) -> None:
    async with page_harness() as harness:
        page = await browser.new_page()
        await page.goto(harness.url + "/settings/backup")
        await page.get_by_label("Backups to keep").fill("9")
        settings = harness.control.settings
        settings.document = {"bridge": {"keep_backups": 5}}
        settings.refused = ConfigError("bridge.toml was changed by hand.", field="digest")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator(".flash.bad")).to_contain_text("changed by hand")
        await expect(page.get_by_label("Backups to keep")).to_have_value("5")
        await page.close()
