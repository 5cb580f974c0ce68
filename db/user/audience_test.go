package user_test

import (
	"context"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/audience/audiencetest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// For every case of the truth table, the SQL predicates give the same result as engine/audience.
func TestAudienceInSQL(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	is := func(predicate string, raw []byte, args ...any) (holds bool) {
		t.Helper()
		read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
			holds, err = user.Holds(ctx, tx, predicate, raw, args...)
			return err
		})
		return holds
	}
	for _, row := range audiencetest.Cases {
		raw := row.Doc(t).WithoutHidden().JSON()
		public := row.Visibility == "public" || row.Visibility == "unlisted"
		if got := is(user.AddressesPublic, raw); got != public {
			t.Errorf("%s: public: %t, want %t", row.Name, got, public)
		}
		if got, want := is(user.Private, raw, audiencetest.Circle), row.Visibility == "direct"; got != want {
			t.Errorf("%s: private: %t, want %t", row.Name, got, want)
		}
		if got := is(user.Named, raw, audiencetest.Bob); got != row.NamesBob {
			t.Errorf("%s: names bob: %t, want %t", row.Name, got, row.NamesBob)
		}
		for n, to := range map[int][]vocab.ID{0: {vocab.Public}, 2: {vocab.Public, audiencetest.Circle}, 8: {vocab.Public, audience.Here(audiencetest.Carol)}} {
			if got, want := is(user.AddressesAny, raw, user.Listed(to)), audiencetest.Yes(t, row.Lists, n); got != want {
				t.Errorf("%s: listed for %s: %t, want %t", row.Name, audiencetest.Viewers[n], got, want)
			}
		}
	}
}

// The truth table has no column for these predicates. Their results follow from the addressing of
// each case.
func TestFurtherAudiencesInSQL(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for _, row := range audiencetest.Cases {
		raw := row.Doc(t).WithoutHidden()
		o, err := vocab.ObjectOf(raw)
		if err != nil {
			t.Fatal(err)
		}
		pair := []vocab.ID{audiencetest.Carol, audiencetest.Bob}
		for _, p := range []struct {
			name, predicate string
			args            []any
			want            bool
		}{
			{"sent to bob", user.SentTo, []any{audiencetest.Bob}, slices.Contains(o.To, audiencetest.Bob)},
			{"among carol and bob", user.Among, []any{`["` + audiencetest.Carol + `","` + audiencetest.Bob + `"]`},
				!slices.ContainsFunc(audience.Open(o.Addressing), func(id vocab.ID) bool { return !slices.Contains(pair, id) })},
			{"for carol's server", user.Here, nil, audience.Names(o.Addressing, audience.Here(audiencetest.Carol))},
		} {
			var holds bool
			read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
				holds, err = user.Holds(ctx, tx, p.predicate, raw.JSON(), p.args...)
				return err
			})
			if holds != p.want {
				t.Errorf("%s: %s: %t, want %t", row.Name, p.name, holds, p.want)
			}
		}
	}
}
