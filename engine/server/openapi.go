package server

import (
	_ "embed"
	"net/http"

	"github.com/julienschmidt/httprouter"
)

// openAPI describes the client API.
//
//go:embed openapi.json
var openAPI []byte

// getOpenAPI serves the description, which is no secret.
func (s *clientAPI) getOpenAPI(a *answer, r *http.Request, _ httprouter.Params) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	a.setCache(cachePublic)
	a.sendTagged(r, apiJSON, openAPI)
	return nil
}
