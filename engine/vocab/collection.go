package vocab

// OrderedCollection is the type of the collections that are served (ActivityStreams vocabulary
// §3.1).
const OrderedCollection = "OrderedCollection"

// Collection is an OrderedCollection as it is served (ActivityStreams core §5).
type Collection struct {
	ID    ID
	Total int // the number of items, or -1 if that is not shown
	First ID  // the first page; empty when the items are not shown
}

// Doc returns the collection as a document.
func (c Collection) Doc() Doc {
	d := Doc{"@context": ContextAS, "id": string(c.ID), "type": OrderedCollection}
	if c.Total >= 0 {
		d["totalItems"] = c.Total
	}
	if c.First != "" {
		d["first"] = string(c.First)
	}
	return d
}

// Page is one page of a collection.
type Page struct {
	ID, PartOf ID
	Next       ID // empty on the last page
	Items      []any
}

// Doc returns the page as a document. An empty page has no orderedItems, because JSON-LD does
// not distinguish an empty list from none.
func (p Page) Doc() Doc {
	d := Doc{"id": string(p.ID), "type": "OrderedCollectionPage", "partOf": string(p.PartOf)}
	if len(p.Items) > 0 {
		d["orderedItems"] = p.Items
	}
	if p.Next != "" {
		d["next"] = string(p.Next)
	}
	d["@context"] = WithQuoteTerms(Context(), d)
	return d
}
