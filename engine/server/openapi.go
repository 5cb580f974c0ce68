package server

import (
	_ "embed"
	"net/http"
	"sync"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

// openAPIFile describes the client API except for its actions, which the outbox describes.
//
//go:embed openapi.json
var openAPIFile []byte

// openAPI returns the whole description, with the actions.
var openAPI = sync.OnceValue(func() []byte {
	d, err := vocab.ParseDoc(openAPIFile)
	if err != nil {
		panic("server: openapi.json: " + err.Error())
	}
	d.Sub("components").Sub("schemas")["Action"] = outbox.Schema()
	return d.JSON()
})

// getOpenAPI serves the description to everybody.
func (s *clientAPI) getOpenAPI(a *answer, r *http.Request, _ httprouter.Params) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	a.setCache(cachePublic)
	a.sendTagged(r, apiJSON, openAPI())
	return nil
}
