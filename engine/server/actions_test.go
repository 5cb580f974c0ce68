package server_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/engine/outbox"
)

func TestActionsAreShownToTheTokensThatMayDispatchThem(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	list := func(scope string) (names []string) {
		var got struct{ Items []outbox.Description }
		f.get("/api/actions", bearerToken(f.token(f.alice, scope))).want(t, 200).decode(t, &got)
		for _, d := range got.Items {
			names = append(names, d.Action)
			if isForSome := d.Action == "Dislike" || d.Action == "UndoDislike"; isForSome != (len(d.Types) > 0) {
				t.Errorf("%s is for objects of the types %q", d.Action, d.Types)
			}
			if d.Params["type"] != "object" || d.Description == "" {
				t.Errorf("%s is described by %q and %v", d.Action, d.Description, d.Params)
			}
		}
		return names
	}
	if diff := cmp.Diff(outbox.Actions(), list("write")); diff != "" {
		t.Errorf("scope write: %s", diff)
	}
	if got := list("llm"); !slices.Contains(got, "Reply") || slices.Contains(got, "Block") {
		t.Errorf("scope llm may dispatch %v", got)
	}
	if got := list("read"); got != nil {
		t.Errorf("scope read may dispatch %v", got)
	}
	f.get("/api/actions").want(t, 401)
	f.get("/api/actions?x=1", bearerToken(f.token(f.alice, "write"))).want(t, 400)
}
