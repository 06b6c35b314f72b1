"""JSON documents as units and add-on groups, by a mapping of paths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tillbridge.adapter import AddOn, AddOnGroup, BadRow, Catalogue
from tillbridge.adapter.sale_options import StockOptions
from tillbridge.adapter.texts import _, joined
from tillbridge.model.export_facts import ExportFacts, ExportWarning
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell
from tillbridge.pos.folder.items import RowValues
from tillbridge.pos.folder.json_paths import Document, Node, parse_path
from tillbridge.pos.folder.mapping import (
    JsonGroups,
    JsonMenu,
    JsonOptions,
    JsonSizes,
    MenuMapping,
)
from tillbridge.pos.folder.units import Record, Unit, UnitMaker, derived_id


@dataclass(slots=True)
class JsonMenuReader:
    """Reads one document. `values` say what prices mean."""

    file: str
    document: Document
    mapping: MenuMapping
    menu: JsonMenu
    values: RowValues
    options: StockOptions
    _groups: "_Groups" = field(init=False)

    def __post_init__(self) -> None:
        self._groups = _Groups(self)

    def read(self) -> tuple[Sequence[Unit], Catalogue]:
        """Return the items with their sizes, and the add-ons."""
        nodes = dict(enumerate(self.nodes(self.menu.items, self.document.root), 1))
        records = [self._record(number, node) for number, node in nodes.items()]
        maker = UnitMaker(self.mapping, self.options, self.values.names, self.place)
        units = list(maker.units(records))
        for unit in units:
            number, row, bad = unit[0]
            if self.menu.sizes is not None and bad is None:
                self._add_sizes(unit, self.menu.sizes, nodes[number])
            number, row, bad = unit[0]
            if bad is None and row["external_id"]:
                self._groups.add(number, cells.plain(row["external_id"]), nodes[number])
        for unit in units:
            number, row, bad = unit[0]
            groups = "|".join(self._groups.of_item(number))
            unit[0] = (number, {**row, "addon_groups": groups}, bad)
        add_ons, groups_by_id = self._groups.named()
        left_out = (
            maker.left_out[record.number]
            for record in records
            if record.number in maker.left_out
            and not self._groups.offers(record.text("external_id"))
        )
        return units, Catalogue(
            add_ons=add_ons,
            addon_groups=groups_by_id,
            bad_rows=tuple(self._groups.bad_rows),
            facts=ExportFacts(
                read_as=self.mapping.title,
                left_out=tuple(left_out),
                warnings=tuple(self._groups.warnings),
            ),
        )

    def place(self, number: int) -> str:
        """Return how a person finds the item with that number."""
        return _("{file}, item {number}").format(file=self.file, number=number)

    def text(self, path: str | None, at: Node) -> str:
        """Return the first value at a path. Raises BadCell for what is no text."""
        return next(iter(self.texts(path, at)), "")

    def line(self, path: str, at: Node, *, needed: bool = False) -> str:
        """Return the first value at a path as one line. Raises BadCell."""
        return cells.text(path, self.text(path, at), needed=needed)

    def texts(self, path: str | None, at: Node) -> tuple[str, ...]:
        """Return the values at a path. Raises BadCell for what is no text."""
        if path is None:
            return ()
        try:
            return self.document.texts(parse_path(path), at)
        except ValueError as failure:
            raise BadCell(
                path,
                "",
                joined("", (path, " ", failure.args[0], ".")),
                _("Correct the path."),
            ) from None

    def nodes(self, path: str, at: Node) -> Iterator[Node]:
        """Yield what is at a path."""
        return self.document.nodes(parse_path(path), at)

    def _record(self, number: int, node: Node) -> Record:
        fields: dict[str, str] = {}
        bad: BadCell | None = None
        for ours, paths in self.mapping.columns.items():
            try:
                found = next(filter(None, (self.texts(str(path), node) for path in paths)), ())
            except BadCell as failure:
                bad, found = failure, ()
            fields[ours] = "|".join(each.replace("|", "/") for each in dict.fromkeys(found))
            if ours != "category":
                fields[ours] = found[0] if found else ""
        filters = {}
        for path in self.mapping.where:
            try:
                filters[path] = ",".join(self.texts(path, node))
            except BadCell as failure:
                bad = failure
        return Record(number, fields, filters=filters, bad=bad)

    def _add_sizes(self, unit: Unit, sizes: JsonSizes, item: Node) -> None:
        """Add the sizes of an item as variants; one without a name is the item's own price."""
        number, row, _bad = unit[0]
        try:
            found = [
                (
                    self.text(sizes.name, node).strip(),
                    self.text(sizes.key, node),
                    self.text(sizes.price, node),
                    self.text(sizes.available, node),
                )
                for node in self.nodes(sizes.path, item)
            ]
        except BadCell as bad:
            unit[0] = (number, row, bad)
            return
        if len(found) == 1 and not found[0][0]:
            unit[0] = (number, {**row, "price": found[0][2]}, None)
            return
        unit[0] = (number, {**row, "price": ""} if found else row, None)
        item_id = cells.plain(row["external_id"])
        for name, key, price, available in found:
            variant = {
                **row,
                "external_id": f"{item_id}/{key or derived_id(name)}",
                "parent_id": item_id,
                "variant_name": name,
                "price": price,
                "available": available,
            }
            text = _('A size of "{item}" has no name.').format(item=row["name"])
            nameless = BadCell(sizes.name, "", text, _("Give each size a name in the till."))
            unit.append((number, variant, None if name else nameless))


@dataclass(frozen=True, slots=True)
class _Group:
    """A group as one item has it: its add-ons by their ids in the document."""

    external_id: str
    name: str
    min_select: int
    max_select: int
    options: tuple[AddOn, ...]


@dataclass(slots=True)
class _Groups:
    """The groups of all items. Ids get their item's or group's in front where one means several.

    A till may offer one add-on at two prices, or one group with other limits: each is a thing of
    its own for the ordering service.
    """

    reader: JsonMenuReader
    bad_rows: list[BadRow] = field(default_factory=list)
    warnings: list[ExportWarning] = field(default_factory=list)
    _of_items: dict[int, list[_Group]] = field(default_factory=dict)
    _owners: dict[int, str] = field(default_factory=dict)
    _seen: dict[str, set[_Group]] = field(default_factory=dict)
    _offers: dict[str, set[AddOn]] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)

    def add(self, number: int, item_id: str, item: Node) -> None:
        """Read the groups of one item."""
        self._owners[number] = item_id
        groups = self._of_items.setdefault(number, [])
        for mapping in self.reader.menu.groups:
            for node in self.reader.nodes(mapping.path, item):
                group = self._group(mapping, node, self.reader.place(number))
                if group is None or not group.options:
                    continue
                same = next(
                    (each for each in groups if each.external_id == group.external_id), None
                )
                if same is None:
                    groups.append(group)
                elif same != group:
                    self._warn(group, number)
                if same is None:
                    self._seen.setdefault(group.external_id, set()).add(group)
                    for option in group.options:
                        self._offers.setdefault(option.external_id, set()).add(option)

    def of_item(self, number: int) -> list[str]:
        """Return the ids of an item's groups."""
        owner = self._owners.get(number, "")
        groups = self._of_items.get(number, ())
        return list(dict.fromkeys(self._id(owner, group) for group in groups))

    def offers(self, option_id: str) -> bool:
        """Return whether it is an add-on of some group, by its id in the document."""
        return option_id in self._offers

    def named(self) -> tuple[dict[str, AddOn], dict[str, AddOnGroup]]:
        """Return all add-ons and groups by their ids."""
        add_ons: dict[str, AddOn] = {}
        groups: dict[str, AddOnGroup] = {}
        for number, of_item in self._of_items.items():
            for group in of_item:
                group_id = self._id(self._owners[number], group)
                members = []
                for option in group.options:
                    option_id = option.external_id
                    if len(self._offers[option_id]) > 1:
                        option_id = f"{group_id}/{option_id}"
                    add_ons[option_id] = AddOn(option_id, option.name, option.price)
                    members.append(option_id)
                groups[group_id] = AddOnGroup(
                    external_id=group_id,
                    name=group.name,
                    min_select=group.min_select,
                    max_select=group.max_select,
                    required=group.min_select > 0,
                    add_ons=tuple(dict.fromkeys(members)),
                )
        return add_ons, groups

    def _warn(self, group: _Group, number: int) -> None:
        self.warnings.append(
            ExportWarning(
                place=self.reader.place(number),
                text=_(
                    'The choice "{name}" differs from size to size; '
                    "online it is offered as for the first."
                ).format(name=group.name),
                fix=_("Give it the same options and prices for every size in the till."),
            )
        )

    def _id(self, owner: str, group: _Group) -> str:
        shared = len(self._seen[group.external_id]) == 1
        return group.external_id if shared else f"{owner}/{group.external_id}"

    def _group(self, mapping: JsonGroups, node: Node, place: str) -> _Group | None:
        reader = self.reader
        try:
            group_id = reader.line(mapping.external_id, node, needed=True)
            options = tuple(self._options(mapping.options, node))
            return _Group(
                external_id=group_id,
                name=reader.line(mapping.name, node) or group_id,
                min_select=self._count(mapping.min_select, node),
                max_select=self._count(mapping.max_select, node),
                options=options,
            )
        except BadCell as bad:
            row = bad.at(place)
            if row.text not in self._reported:  # many items may share the group
                self._reported.add(row.text)
                self.bad_rows.append(row)
            return None

    def _options(self, mapping: JsonOptions, group: Node) -> Iterator[AddOn]:
        reader = self.reader
        for node in reader.nodes(mapping.path, group):
            price = reader.text(mapping.price, node)
            name = reader.line(mapping.name, node, needed=True)
            yield AddOn(
                external_id=reader.line(mapping.external_id, node, needed=True),
                name=name,
                price=reader.values.price_of(mapping.price, price, name) if price else 0,
            )

    def _count(self, path: str | None, node: Node) -> int:
        number = self.reader.text(path, node).removesuffix(".0")
        return cells.whole_number(path or "", number, empty=0) or 0
