"""The demo's tools, which answer from small tables, and its ten tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from langchain_core.tools import BaseTool, tool

SYSTEM_PROMPT = (
    "You are the assistant of a small company. Today is 2026-11-30. Use the tools. "
    "Once a tool has answered, tell the user the result in one short sentence."
)


@tool
def search_flights(
    origin: str,
    destination: str,
    date: str,
    passengers: int,
    cabin: Literal["economy", "premium", "business"] = "economy",
) -> str:
    """Search for flights.

    Args:
        origin: IATA code of the airport of departure, such as CDG.
        destination: IATA code of the airport of arrival.
        date: Day of departure as YYYY-MM-DD.
        passengers: Number of travellers.
        cabin: Cabin class.
    """
    return f"TP 553 {origin}-{destination} on {date} at 08:40, {cabin}, 182 EUR for each of {passengers}"


@tool
def book_hotel(city: str, check_in: str, check_out: str, guests: int, room_type: str = "double") -> str:
    """Book a hotel room.

    Args:
        city: City of the hotel.
        check_in: First night as YYYY-MM-DD.
        check_out: Day of departure as YYYY-MM-DD.
        guests: Number of guests.
        room_type: Kind of room.
    """
    return f"Booked: Hotel Central in {city}, {room_type} room, {check_in} to {check_out}, confirmation H-20711"


@tool
def create_event(title: str, start: str, end: str, attendees: list[str], location: str) -> str:
    """Put a meeting into the shared calendar.

    Args:
        title: Title of the meeting.
        start: Begin in ISO 8601, such as 2026-01-31T09:00:00.
        end: End in ISO 8601.
        attendees: Mail addresses of those invited.
        location: Room or place.
    """
    return f"Created event E-4410 with {len(attendees)} attendees"


@tool
def get_weather(city: str, country: str, units: Literal["metric", "imperial"] = "metric") -> str:
    """Get the weather of today.

    Args:
        city: Name of the city.
        country: Name of the country.
        units: System of units.
    """
    return "Light snow, -3 degrees, wind 12"


@tool
def convert_currency(amount: float, from_currency: str, to_currency: str) -> str:
    """Convert an amount of money at today's rate.

    Args:
        amount: Amount to convert.
        from_currency: ISO 4217 code of the currency to convert from.
        to_currency: ISO 4217 code of the currency to convert to.
    """
    return f"{round(amount * 168.2, 2)} {to_currency}"


@tool
def open_ticket(title: str, component: str, priority: Literal["low", "medium", "high", "urgent"], assignee: str) -> str:
    """Open a ticket in the issue tracker.

    Args:
        title: One line that says what is wrong.
        component: Component concerned.
        priority: Priority of the ticket.
        assignee: Mail address of the one who shall look at it.
    """
    return "Opened ticket T-1893"


@tool
def transfer_money(from_account: str, to_iban: str, amount: float, currency: str, reference: str) -> str:
    """Transfer money to another account.

    Args:
        from_account: Own account to pay from.
        to_iban: IBAN of the receiver.
        amount: Amount of money.
        currency: ISO 4217 code of the currency.
        reference: Text that the receiver sees.
    """
    return "Transfer accepted, number 77120"


@tool
def translate_text(text: str, source_language: str, target_language: str) -> str:
    """Translate a text.

    Args:
        text: Text to translate.
        source_language: ISO 639-1 code of the text's language.
        target_language: ISO 639-1 code of the language to translate into.
    """
    return "Onde fica a estacao de comboios?"


@tool
def look_up_order(order_id: str, email: str, include_history: bool = False) -> str:
    """Look up an order of the shop.

    Args:
        order_id: Number of the order.
        email: Mail address of the customer.
        include_history: Whether to list earlier states too.
    """
    return f"{order_id}: shipped on 2026-11-27, parcel 00340434161094"


TOOLS: list[BaseTool] = [
    search_flights,
    book_hotel,
    create_event,
    get_weather,
    convert_currency,
    open_ticket,
    transfer_money,
    translate_text,
    look_up_order,
]


@dataclass(frozen=True)
class Task:
    """One task. `derived` tells that the call needs a value that stands nowhere in the conversation."""

    name: str
    prompt: str
    derived: bool


TASKS: tuple[Task, ...] = (
    Task("order", "Where is the order ORD-58213 of maria.silva@example.com? Include its history.", False),
    Task(
        "flight",
        "Find flights from Munich to Lisbon on the 14th of December 2026 for 2 passengers in economy.",
        True,
    ),
    Task(
        "ticket",
        "Open a ticket with the title 'Checkout page answers HTTP 500' for the component payments with "
        "priority high and assign it to lena.krug@example.com.",
        False,
    ),
    Task("currency", "How many Japanese yen are 250 Swiss francs?", True),
    Task("weather", "What is the weather like in Oslo, Norway? Use metric units.", False),
    Task(
        "meeting",
        "Schedule 'Quarterly review' this Thursday from 10 am to half past eleven with anna@example.com and "
        "ben@example.com in room Aurora.",
        True,
    ),
    Task(
        "transfer",
        "Transfer 420.50 EUR from account savings-01 to IBAN DE89370400440532013000 with the reference Invoice 2217.",
        False,
    ),
    Task("hotel", "Book a hotel in Kyoto from the 5th to the 9th of January 2027 for three guests.", True),
    Task("translate", "Translate 'Where is the train station?' from English into Portuguese.", True),
    Task(
        "hotel-dates",
        "Book a hotel in Lisbon with check-in 2026-12-14 and check-out 2026-12-17 for 2 guests, room type double.",
        False,
    ),
)
