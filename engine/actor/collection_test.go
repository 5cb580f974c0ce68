package actor

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestCollectionsComeFromTheirOwnServer(t *testing.T) {
	t.Parallel()
	n, p, other := newNode(t, settings{store: forgetful{}}), newPeer(t), newPeer(t)
	n.objectRate = policy.ObjectFetches.SharedAt(policy.Rate{PerSecond: 1.0 / 3600, Burst: 5}, n.Now)
	list := func(id, kind string) vocab.Doc {
		return vocab.Doc{"id": id, "type": kind, "items": []any{other.URL + "/notes/1"}}
	}
	p.show("/list", list(p.URL+"/list", "Collection"))
	p.show("/page", list(p.URL+"/page", "OrderedCollectionPage"))
	p.show("/note", list(p.URL+"/note", "Note"))
	p.show("/foreign", list(other.URL+"/list", "Collection"))
	p.show("/last", list(p.URL+"/last", "Collection"))
	for _, tt := range []struct {
		path string
		want fault.Kind
	}{{"/list", 0}, {"/page", 0}, {"/note", fault.Protocol}, {"/foreign", fault.Protocol}, {"/none", fault.NotFound}, {"/last", fault.RateLimited}} {
		d, err := n.Collection(context.Background(), p.id(tt.path))
		checkKind(t, "Collection "+tt.path, err, tt.want)
		if ids, bad := d.IDs("items"); tt.want == 0 && (bad != nil || len(ids) != 1 || ids[0] != other.id("/notes/1")) {
			t.Errorf("Collection %s lists %q, %v", tt.path, ids, bad)
		}
	}
	if other.all() != 0 {
		t.Error("the server of what is listed was asked")
	}
}
