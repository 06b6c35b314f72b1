"""The page's subjects and its navigation: a new page is a line here."""

from tillbridge.core.i18n import N_
from tillbridge.web.site import (
    audit,
    board,
    diagnostics,
    help_pages,
    menu,
    orders,
    overview,
    settings,
    setup,
    store,
    tables,
)
from tillbridge.web.site.book import NavigationLine

EVERYTHING = (
    *overview.SUBJECT,
    *store.INTEGRATION,
    *store.COMMUNITIES,
    *orders.SUBJECT,
    *menu.SUBJECT,
    *board.SUBJECT,
    *tables.SUBJECT,
    *store.SUBJECT,
    *overview.GLANCE,
    *diagnostics.SUBJECT,
    *diagnostics.REACH,
    *diagnostics.LOGS,
    *audit.SUBJECT,
    *settings.SUBJECT,
    *setup.SUBJECT,
    *help_pages.SUBJECT,
)
# Those available before there is a store; "/" then leads to set-up.
BEFORE_SETUP = (*setup.SUBJECT, *diagnostics.REACH, *help_pages.SUBJECT)

# Shown in this order; a line whose page is not there yet is left out.
NAVIGATION = (
    NavigationLine("/", N_("Overview"), "layout-dashboard"),
    NavigationLine("/orders", N_("Orders"), "receipt-text"),
    NavigationLine("/menu", N_("Menu"), "utensils"),
    NavigationLine("/86", N_("Sold out"), "circle-off"),
    NavigationLine("/tables", N_("Tables"), "qr-code"),
    NavigationLine("/store", N_("Store"), "store"),
    NavigationLine("/diagnostics", N_("Diagnostics"), "activity"),
    NavigationLine("/settings", N_("Settings"), "settings", also=("/setup",)),
    # Before there is a store.
    NavigationLine("/setup", N_("Set-up"), "settings", unless="/settings"),
    NavigationLine("/help", N_("Help"), "circle-help"),
)
