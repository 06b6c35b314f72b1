"""The page's subjects and its navigation: a new page is a line here."""

from tillbridge.core.i18n import _
from tillbridge.web.site import diagnostics, menu, orders, overview, setup, store, tables
from tillbridge.web.site.book import NavigationLine

EVERYTHING = (
    *overview.SUBJECT,
    *store.INTEGRATION,
    *store.COMMUNITIES,
    *orders.SUBJECT,
    *menu.SUBJECT,
    *menu.BOARD,
    *tables.SUBJECT,
    *store.SUBJECT,
    *diagnostics.SUBJECT,
    *diagnostics.REACH,
    *diagnostics.AUDIT,
    *setup.SUBJECT,
)
# What there is of them before there is a store; "/" then leads to set-up.
BEFORE_SETUP = (*setup.SUBJECT, *diagnostics.REACH)

# Shown in this order; a line whose page is not there yet is left out.
NAVIGATION = (
    NavigationLine("/", _("Overview")),
    NavigationLine("/orders", _("Orders")),
    NavigationLine("/menu", _("Menu")),
    NavigationLine("/86", _("86")),
    NavigationLine("/tables", _("Tables")),
    NavigationLine("/store", _("Store")),
    NavigationLine("/diagnostics", _("Diagnostics")),
    NavigationLine("/setup", _("Set-up")),
)
