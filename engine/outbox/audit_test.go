package outbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// measured returns the number that a query finds in alice's database.
func (d *desk) measured(query string) (n int) {
	d.t.Helper()
	if err := dbtest.SQL(d.t, d.c, d.alice).QueryRowContext(d.t.Context(), query).Scan(&n); err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// The refused actions of a token leave a few rows together, not one each, and no large rows. The
// cases waste space in every way.
func TestRefusedDispatchesAreCountedAndNotKept(t *testing.T) {
	t.Parallel()
	much := strings.Repeat("x", 256<<10)
	for _, c := range []struct {
		name, action string
		params       func(n int) string
	}{
		{"much in one text", "CreateNote", func(int) string { return `{"content":"` + much + `"}` }},
		{"much in names", "CreateNote", func(n int) string {
			return fmt.Sprintf(`{"%d%s":1,"%d%s":1}`, n, much[:100_000], n+1, much[:100_000])
		}},
		{"much in many members", "CreateNote", func(n int) string {
			return fmt.Sprintf(`{"content":"x","tags":["%d"%s]}`, n, strings.Repeat(`,"a"`, 50_000))
		}},
		{"numbers, which take most when they are stored", "CreateNote", func(int) string { return `{"content":"x","tags":[1` + strings.Repeat(`,1`, 100_000) + `]}` }},
		{"deep inside", "CreateNote", func(int) string {
			return `{"content":"x","to":` + strings.Repeat("[", 20) + `"` + much[:1000] + `"` + strings.Repeat(`,"`+much[:1000]+`"`, 200) + strings.Repeat("]", 20) + `}`
		}},
		{"actions that there are not", "", func(n int) string { return `{"content":"` + much + `"}` }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := town(t)
			d.must("CreateNote", map[string]any{"content": "before"})
			for n := range 100 {
				action := c.action
				if action == "" {
					action = fmt.Sprint("Explode", n)
				}
				if _, err := d.dispatch(action, c.params(n)); err == nil {
					t.Fatal("it was not refused")
				}
			}
			d.must("CreateNote", map[string]any{"content": "after"})
			if rows := d.measured(`SELECT count(*) FROM audit`); rows > 4 {
				t.Errorf("%d rows, want the two notes and a count", rows)
			}
			if most := d.measured(`SELECT max(octet_length(t::text)) FROM audit t`); most > 4096 {
				t.Errorf("a row has %d bytes, want 4096 at most", most)
			}
			if most := d.measured(`SELECT max(length(jsonb_send(params)) + pg_column_size(params)) FROM audit`); most > 2*4096 {
				t.Errorf("parameters take %d bytes, want 4096 at most", most)
			}
			d.Flush(t.Context())
			if n := d.measured(`SELECT sum(times) FROM audit WHERE outcome <> 'ok'`); n != 100 {
				t.Errorf("%d refusals are counted, want 100", n)
			}
		})
	}
}

// The audit shortens parameters in one way, and says how much it left out.
func TestAuditedParametersSayWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1000)
	for _, c := range []struct{ name, params, want string }{
		{"short", `{"objectId":"hi","to":["a"],"sensitive":true}`, `{"objectId":"hi","sensitive":true,"to":["a"]}`},
		{"words", `{"content":"hé","summary":"x","tags":["a"]}`, `{"content":{"bytes":3},"summary":{"bytes":1},"tags":{"bytes":5}}`},
		{"a parameter that no action has", `{"objectId":"hi","text":"secret","Content":"secret"}`, `{"lightweb:leftOut":2,"objectId":"hi"}`},
		{"nothing", ``, `{}`},
		{"no object", `[1]`, `{}`},
		{"a long text", `{"objectId":"` + long + `"}`, `{"objectId":"` + strings.Repeat("é", 512) + `"}`},
		{"long texts", `{"activityId":"` + long + `","actorUri":"` + long + `","inReplyTo":"` + long + `","objectId":"` + long + `","sensitive":true}`,
			`{"activityId":"` + long[:1024] + `","actorUri":"` + long[:1024] + `","inReplyTo":"` + long[:1024] + `","lightweb:leftOut":1,"sensitive":true}`},
	} {
		if got := string(auditedParams([]byte(c.params))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if n := len(auditedParams(vocab.Doc{"to": strings.Split(strings.Repeat("x ", 100_000), " ")}.JSON())); n > maxAuditedParams {
		t.Errorf("%d bytes of parameters, want %d at most", n, maxAuditedParams)
	}
}

func TestAnAuditRecordKnowsEveryParameter(t *testing.T) {
	t.Parallel()
	for _, d := range Describe() {
		for _, p := range d.Names {
			if _, known := audited[p.Name]; !known {
				t.Errorf("%s: no audit record has %s", d.Action, p.Name)
			}
		}
	}
}
