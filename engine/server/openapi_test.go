package server

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/outbox"
)

// description holds the parts of the OpenAPI document that this test checks.
type description struct {
	Paths      map[string]map[string]struct{ Responses map[string]json.RawMessage }
	Components struct {
		Schemas map[string]struct {
			OneOf []struct {
				Title      string
				Properties struct {
					Action struct{ Const string }
				}
			}
		}
	}
}

func TestOpenAPIDescribesEveryRouteAndActionOfTheAPI(t *testing.T) {
	var d description
	if err := json.Unmarshal(openAPI(), &d); err != nil {
		t.Fatal(err)
	}
	var want []string
	for method, routes := range map[string]map[string]handle{"post": new(Server).postRoutes(), "put": new(Server).putRoutes(), "delete": new(Server).deleteRoutes(), "get": new(Server).getRoutes()} {
		for path := range routes {
			if strings.HasPrefix(path, apiPrefix) || path == socketPath {
				want = append(want, method+" "+strings.NewReplacer(":entry", "{id}", ":job", "{job}", ":id", "{id}", ":welcome", "{id}", ":package", "{id}").Replace(path))
			}
		}
	}
	slices.Sort(want)
	var got []string
	for path, methods := range d.Paths {
		for method, operation := range methods {
			got = append(got, method+" "+path)
			if operation.Responses["4XX"] == nil || operation.Responses["5XX"] == nil {
				t.Errorf("%s %s does not say how it refuses", method, path)
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	var actions []string
	for _, a := range d.Components.Schemas["Action"].OneOf {
		if a.Title != a.Properties.Action.Const {
			t.Errorf("the action %q is titled %q", a.Properties.Action.Const, a.Title)
		}
		actions = append(actions, a.Title)
	}
	slices.Sort(actions)
	if diff := cmp.Diff(outbox.Actions(), actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestOpenAPITakesEveryFeed(t *testing.T) {
	var d struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema struct{ AnyOf []struct{ Pattern string } }
			}
		}
	}
	if err := json.Unmarshal(openAPI(), &d); err != nil {
		t.Fatal(err)
	}
	pattern := ""
	for _, p := range d.Paths["/api/feed"]["get"].Parameters {
		for _, one := range p.Schema.AnyOf {
			if p.Name == "feed" && one.Pattern != "" {
				pattern = one.Pattern
			}
		}
	}
	of := regexp.MustCompile(pattern)
	for _, prefix := range []string{feed.GroupPrefix, feed.TagPrefix, feed.StreamPrefix} {
		if !of.MatchString(prefix+"x") || of.MatchString(prefix) {
			t.Errorf("the pattern %s does not go by the prefix %s", pattern, prefix)
		}
	}
}

func TestPagesMaySendEveryHeaderOfTheAPI(t *testing.T) {
	type parameter struct{ In, Name string }
	var d struct {
		Paths      map[string]map[string]struct{ Parameters []parameter }
		Components struct{ Parameters map[string]parameter }
	}
	if err := json.Unmarshal(openAPI(), &d); err != nil {
		t.Fatal(err)
	}
	all := slices.Collect(maps.Values(d.Components.Parameters))
	for _, methods := range d.Paths {
		for _, operation := range methods {
			all = append(all, operation.Parameters...)
		}
	}
	headers := 0
	for _, p := range all {
		if p.In != "header" {
			continue
		}
		headers++
		if !slices.Contains(strings.Split(corsSends, ", "), p.Name) {
			t.Errorf("pages of an allowed origin may not send %s", p.Name)
		}
	}
	if headers == 0 {
		t.Error("the API has no header parameters")
	}
}
