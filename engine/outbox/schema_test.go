package outbox

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

var update = flag.Bool("update", false, "write the page of actions")

// exampleOf returns a valid value for a schema.
func exampleOf(t *testing.T, name string, schema vocab.Doc) any {
	t.Helper()
	if of, is := schema["examples"].([]any); is {
		return of[0]
	}
	switch schema["type"] {
	case "array":
		return []any{exampleOf(t, name, schema["items"].(vocab.Doc))}
	case "object":
		d := vocab.Doc{}
		for name, part := range schema["properties"].(vocab.Doc) {
			d[name] = exampleOf(t, name, part.(vocab.Doc))
		}
		return d
	}
	t.Fatalf("%s: there is no example of %v", name, schema)
	return nil
}

// exampleParams returns valid parameters of an action. Of several alternatives they include one.
// They include no parameter without the parameter that it needs.
func exampleParams(t *testing.T, d Description) vocab.Doc {
	t.Helper()
	params := exampleOf(t, d.Action, d.Params).(vocab.Doc)
	if either, is := d.Params["oneOf"].([]any); is {
		for _, other := range either[1:] {
			delete(params, other.(vocab.Doc)["required"].([]any)[0].(string))
		}
	}
	needs, _ := d.Params["dependentRequired"].(vocab.Doc)
	for name, needed := range needs {
		if params[needed.([]any)[0].(string)] == nil {
			delete(params, name)
		}
	}
	return params
}

func readAction(name string, params vocab.Doc) error {
	_, err := vocabulary[name].read(params.JSON())
	return err
}

// wantRefused checks that an action is refused, and that the answer points to the wrong parameter.
func wantRefused(t *testing.T, d Description, what, at string, params vocab.Doc) {
	t.Helper()
	e := fault.Of(readAction(d.Action, params))
	if e == nil || e.Kind != fault.Unprocessable || e.Code != "invalid_parameter" || !strings.HasPrefix(e.Pointer, at) {
		t.Errorf("%s with %s: %+v, want invalid_parameter at %s", d.Action, what, e, at)
	}
}

func TestAnActionIsReadAsItsSchemaSays(t *testing.T) {
	for _, d := range Describe() {
		good := exampleParams(t, d)
		if err := readAction(d.Action, good); err != nil {
			t.Errorf("%s with %s: %v", d.Action, good.JSON(), err)
		}
		required, _ := d.Params["required"].([]any)
		least := vocab.Doc{}
		for name := range good {
			if slices.Contains(required, any(name)) || d.Params["oneOf"] != nil {
				least[name] = good[name]
			}
		}
		if err := readAction(d.Action, least); err != nil && !isConditional(err) {
			t.Errorf("%s with %s: %v", d.Action, least.JSON(), err)
		}
		for _, name := range required {
			wantRefused(t, d, "no "+name.(string), "/params/", without(good, name.(string)))
		}
		wantRefused(t, d, "one more", "/params/more", with(good, "more", "x"))
		for name, part := range d.Params["properties"].(vocab.Doc) {
			schema := part.(vocab.Doc)
			if good[name] == nil {
				continue
			}
			for _, wrong := range []any{7, vocab.Doc{"a": 1}, []any{[]any{}}} {
				wantRefused(t, d, fmt.Sprintf("%s = %v", name, wrong), "/params/"+name, with(good, name, wrong))
			}
			if most, bounded := schema["maxLength"].(int); bounded {
				wantRefused(t, d, "a long "+name, "/params/"+name, with(good, name, "https://a.example/"+strings.Repeat("a", most)))
			}
			if most, bounded := schema["maxItems"].(int); bounded && schema["minItems"] == nil {
				wantRefused(t, d, "many "+name, "/params/", with(good, name, slices.Repeat([]any{exampleOf(t, name, schema["items"].(vocab.Doc))}, most+1)))
			}
			if schema["minLength"] != nil {
				wantRefused(t, d, "an empty "+name, "/params/"+name, with(good, name, ""))
			}
			if schema["enum"] != nil || schema["format"] == "uri" {
				wantRefused(t, d, "another "+name, "/params/"+name, with(good, name, "something else"))
			}
		}
	}
}

// isConditional reports whether an action was refused because of a rule that its schema states
// only in its description.
func isConditional(err error) bool {
	return strings.Contains(err.Error(), "there is nothing to change") || strings.Contains(err.Error(), "an Audio or Video has a file")
}

func with(d vocab.Doc, name string, value any) vocab.Doc {
	out := without(d, name)
	out[name] = value
	return out
}

func without(d vocab.Doc, name string) vocab.Doc {
	out := vocab.Doc{}
	for n, v := range d {
		if n != name {
			out[n] = v
		}
	}
	return out
}

func TestEveryParameterHasAForm(t *testing.T) {
	types := []reflect.Type{reflect.TypeFor[attachment](), reflect.TypeFor[mediaFile](), reflect.TypeFor[profileField]()}
	for _, a := range vocabulary {
		types = append(types, a.params)
	}
	used := map[string]bool{}
	for _, of := range types {
		for _, f := range reflect.VisibleFields(of) {
			if paramName(f) == "" {
				continue
			}
			if paramForm(f) == nil {
				t.Errorf("%s.%s has no form", of, f.Name)
			}
			form, _, _ := strings.Cut(f.Tag.Get("schema"), ",")
			used[form] = true
		}
	}
	for form := range forms {
		if !used[form] {
			t.Errorf("no parameter has the form %s", form)
		}
	}
}

func TestThePageOfActionsShowsEachAsItIsRead(t *testing.T) {
	const path = "../../docs/actions.md"
	want := actionsPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := os.ReadFile(path); err != nil || string(page) != want {
		t.Errorf("%s is not what the code says (%v): run go test ./engine/outbox -run PageOfActions -update", path, err)
	}
}

// actionsPage returns the text of docs/actions.md.
func actionsPage() string {
	var b strings.Builder
	b.WriteString("# The actions\n\n<!-- written by go test ./engine/outbox -run PageOfActions -update -->\n\n" +
		"All that `POST /api/activity` takes. [The client API](api.md#dispatch-an-action) says how they are\n" +
		"dispatched and answered. `GET /api/actions` returns the same for a program, with a JSON Schema of\n" +
		"the parameters of each. `?`: it may be absent. `|`: exactly one of them.\n\n" +
		"| Action | Parameters | llm | |\n|---|---|---|---|\n")
	for _, d := range Describe() {
		llm := ""
		if slices.Contains(d.Scopes, "llm") {
			llm = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Action, listParams(d), llm, d.Description)
	}
	b.WriteString("\n## Parameters\n\n| Parameter | Type | |\n|---|---|---|\n")
	rows := map[string]bool{}
	for _, d := range Describe() {
		addParamRows(rows, "", d.Params)
	}
	for _, row := range slices.Sorted(func(yield func(string) bool) {
		for row := range rows {
			if !yield(row) {
				return
			}
		}
	}) {
		b.WriteString(row)
	}
	return b.String()
}

func listParams(d Description) string {
	either := []string{}
	var all []string
	for _, p := range d.Names {
		switch {
		case p.Required:
			all = append(all, "`"+p.Name+"`")
		case p.Either:
			either = append(either, "`"+p.Name+"`")
		default:
			all = append(all, "`"+p.Name+"?`")
		}
	}
	if len(either) > 0 {
		all = append(all, strings.Join(either, " \\| "))
	}
	return strings.Join(all, ", ")
}

func addParamRows(rows map[string]bool, prefix string, schema vocab.Doc) {
	for name, part := range schema["properties"].(vocab.Doc) {
		s := part.(vocab.Doc)
		words := s.Text("description")
		if item := s.Sub("items"); item != nil && words == "" {
			words = item.Text("description")
		}
		rows[fmt.Sprintf("| `%s%s` | %s | %s |\n", prefix, name, typeWords(s), words)] = true
		if item := s.Sub("items"); item != nil && item["type"] == "object" {
			addParamRows(rows, name+"[].", item)
		}
		if s["type"] == "object" {
			addParamRows(rows, name+".", s)
		}
	}
}

// typeWords describes the type and the bounds of a parameter in words.
func typeWords(s vocab.Doc) string {
	switch {
	case s["enum"] != nil:
		b, _ := json.Marshal(s["enum"])
		return "one of `" + strings.NewReplacer(`["`, "", `"]`, "", `","`, "`, `").Replace(string(b)) + "`"
	case s["type"] == "array" && s["minItems"] != nil:
		return fmt.Sprintf("%v numbers", s["minItems"])
	case s["type"] == "array":
		return fmt.Sprintf("up to %v: %s", s["maxItems"], typeWords(s["items"].(vocab.Doc)))
	case s["format"] == "uri":
		return "URI"
	case s["maxLength"] != nil:
		return fmt.Sprintf("text, up to %v", s["maxLength"])
	}
	return s.Text("type")
}
