package handler

import (
	"crypto/sha256"
	"encoding/base32"
	"net/http"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// ParseRequest parses the activity in the body of a request with the headers h. If the type may
// come without an id (Handler.Unnamed), an activity without an id gets one on its actor's server.
// The id is made from the body and the signature. So a repeat of the request gives the same id,
// and a later request with an equal activity gives another id. If the sender signs its second try
// anew, that is another activity, too.
func ParseRequest(body []byte, h http.Header) (*vocab.Activity, error) {
	d, err := vocab.ParseDoc(body)
	if err != nil {
		return nil, err
	}
	raw := body
	if isUnnamed(d) {
		d["id"] = madeID(d, body, h)
		raw = d.JSON()
	}
	return vocab.ActivityOf(d, raw)
}

func isUnnamed(d vocab.Doc) bool {
	kind, err := d.Type()
	if err != nil || !data.OfType(kind).Unnamed {
		return false
	}
	id, err := d.ID()
	return err == nil && id == ""
}

func madeID(d vocab.Doc, body []byte, h http.Header) string {
	actor, err := d.Ref("actor")
	if err != nil || actor.ID == "" {
		return "" // refused when the activity is parsed
	}
	signed := sha256.New()
	for _, s := range h.Values("Signature") {
		signed.Write([]byte(s))
	}
	signed.Write(body)
	return string(actor.ID.Document()) + "#unnamed-" + strings.ToLower(base32.StdEncoding.EncodeToString(signed.Sum(nil)[:20]))
}
