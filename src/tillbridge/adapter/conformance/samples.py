"""Items and orders that the checks use."""

from collections.abc import Sequence

from tillbridge.model.catalogue import Item
from tillbridge.model.order import Order, parse_order

# Prices that binary fractions get wrong (1.15 * 100 is 114.99999999999999), and the small ones.
ODD_PRICES = (0, 1, 5, 10, 99, 100, 101, 113, 115, 435, 1010, 1999, 8195, 28_95, 123_456)

NAMES = (
    "Crème brûlée",
    "Smörgåstårta",
    "Καφές ελληνικός",
    "Борщ",
    "寿司盛り合わせ",
    "مشاوي مشكلة",
    "Piña colada 🍍",
    "Bœuf bourguignon",
    'Burger "Doppio"; extra, large',
    "Fish & Chips <fresh>",
)


def plain_items(count: int = 3) -> tuple[Item, ...]:
    """Return so many different items, with different prices."""
    return tuple(
        Item(external_id=f"sku-{number}", name=f"Dish {number}", price=500 + 25 * number)
        for number in range(1, count + 1)
    )


def named_items(names: Sequence[str]) -> tuple[Item, ...]:
    """Return an item for each name."""
    return tuple(
        Item(external_id=f"sku-{number}", name=name, price=700)
        for number, name in enumerate(names, 1)
    )


def priced_items(prices: Sequence[int]) -> tuple[Item, ...]:
    """Return an item for each price (minor units)."""
    return tuple(
        Item(external_id=f"sku-{number}", name=f"Dish {number}", price=price)
        for number, price in enumerate(prices, 1)
    )


def order_of(order_id: str, items: Sequence[Item], currency: str = "EUR") -> Order:
    """Return an order of one of each item, paid, as the service delivers it."""
    total = sum(item.price for item in items)
    return parse_order(
        {
            "id": order_id,
            "order_number": order_id[-8:],
            "order_type": "delivery",
            "status": "pending",
            "payment_status": "paid",
            "customer_id": "cus_conformance",
            "currency": currency,
            "subtotal": total,
            "tax": 0,
            "delivery_fee": 0,
            "discount": 0,
            "tip": 0,
            "total_amount": total,
            "prices_include_tax": True,
            "tax_breakdown": [],
            "special_instructions": "Ring twice",
            "created_at": "2026-01-02T18:00:00.000Z",
            "items": [
                {
                    "product_id": f"prod_{number}",
                    "product_variant_id": None,
                    "product_name": item.name,
                    "quantity": 1,
                    "unit_price": item.price,
                    "subtotal": item.price,
                    "tax_amount": 0,
                    "external_id": item.external_id,
                    "variant_external_id": None,
                    "options": [],
                }
                for number, item in enumerate(items, 1)
            ],
        }
    )
