package vocab

// Card describes an actor for display beside its posts.
type Card struct {
	Name      string `json:"name"`   // one line of plain text
	Handle    string `json:"handle"` // such as @bob@peer.example; empty when the name cannot be part of a handle
	Icon      ID     `json:"icon"`   // the address of a picture
	Followers ID     `json:"-"`      // the collection of followers
}

// CardOf returns the card of an actor from its document.
func CardOf(id ID, d Doc) Card {
	c := Card{Name: OneLine(PlainText(d.Words("name"))), Icon: pictureOf(d)}
	if name := handleName(d.Text("preferredUsername")); name != "" {
		c.Handle = "@" + name + "@" + id.Host()
	}
	if r, err := d.Ref("followers"); err == nil && r.ID.SameOrigin(id) {
		c.Followers = r.ID
	}
	return c
}

// pictureOf returns the address of the first picture of an actor, or an empty id if there is none.
func pictureOf(d Doc) ID {
	for _, v := range d.list("icon") {
		address, _ := v.(string)
		if icon, embedded := v.(Doc); embedded {
			if address = icon.Text("url"); address == "" {
				address = icon.Text("href")
			}
			if link := icon.Sub("url"); link != nil {
				address = link.Text("href")
			}
		}
		if id, err := ParseID(address); err == nil && address != "" {
			return id
		}
	}
	return ""
}
