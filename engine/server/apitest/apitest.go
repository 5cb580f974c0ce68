// Package apitest checks responses of the client API against the API's description, openapi.json.
// A described object may have undescribed members only if additionalProperties permits them.
package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"testing"
)

type schema = map[string]any

// Description is the part of OpenAPI that describes responses.
type Description struct {
	Paths      map[string]map[string]struct{ Responses map[string]outcome }
	Components struct {
		Responses map[string]outcome
		Schemas   map[string]schema
	}
}

type outcome struct {
	Content map[string]struct{ Schema schema }
}

// Exchange is a request to the client API with its response.
type Exchange struct {
	Method, Path string
	Status       int
	Header       http.Header
	Body         []byte
}

// Read reads a description.
func Read(t testing.TB, openAPI []byte) (d Description) {
	t.Helper()
	if err := json.Unmarshal(openAPI, &d); err != nil {
		t.Fatalf("the description of the client API cannot be read: %v", err)
	}
	return d
}

// Operations returns every described method and path, in the form "get /api/me".
func (d Description) Operations() (all []string) {
	for path, methods := range d.Paths {
		for method := range methods {
			all = append(all, method+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// Operation returns the operation that an exchange belongs to. If the description has no such
// operation, it returns "".
func (d Description) Operation(x Exchange) string {
	for _, op := range d.Operations() {
		method, form, _ := strings.Cut(op, " ")
		parts, wanted := strings.Split(x.Path, "/"), strings.Split(form, "/")
		isSame := func(part, want string) bool { return part == want || strings.HasPrefix(want, "{") }
		if strings.EqualFold(method, x.Method) && slices.EqualFunc(parts, wanted, isSame) {
			return op
		}
	}
	return ""
}

// Check fails the test if an exchange differs from the description. It ignores the methods HEAD
// and OPTIONS, and paths outside the client API. If d is empty, it checks nothing.
func (d Description) Check(t testing.TB, x Exchange) {
	t.Helper()
	if !strings.HasPrefix(x.Path, "/api/") || x.Method == http.MethodHead || x.Method == http.MethodOptions || d.Paths == nil {
		return
	}
	if found := d.differs(x); found != "" {
		t.Errorf("%s %s is answered %d, not as described: %s\n%.2000s", x.Method, x.Path, x.Status, found, x.Body)
	}
}

// differs returns how a response differs from the description, or "" if it does not.
func (d Description) differs(x Exchange) string {
	method, path, _ := strings.Cut(d.Operation(x), " ")
	want, there := d.Paths[path][method].Responses[fmt.Sprint(x.Status)]
	if !there && x.Status < http.StatusBadRequest {
		return "no such status"
	}
	if !there {
		want = d.Components.Responses["Problem"]
	}
	if len(want.Content) == 0 {
		if len(x.Body) > 0 {
			return "a body"
		}
		return ""
	}
	kind, _, _ := mime.ParseMediaType(x.Header.Get("Content-Type"))
	content, there := want.Content[kind]
	if !there {
		return fmt.Sprintf("a body of the type %q", kind)
	}
	if !strings.HasSuffix(kind, "json") {
		return ""
	}
	var value any
	if err := json.Unmarshal(x.Body, &value); err != nil {
		return err.Error()
	}
	return d.differ(content.Schema, value, "")
}

// resolve returns a schema without references. The parts of an allOf are merged into one schema.
func (d Description) resolve(s schema) schema {
	if ref, is := s["$ref"].(string); is {
		return d.resolve(d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")])
	}
	parts, is := s["allOf"].([]any)
	if !is {
		return s
	}
	whole, members, required := maps.Clone(s), schema{}, []any{}
	for _, p := range parts {
		part := d.resolve(p.(schema))
		of, _ := part["properties"].(schema)
		maps.Copy(members, of)
		some, _ := part["required"].([]any)
		required = append(required, some...)
	}
	whole["type"], whole["properties"], whole["required"] = "object", members, required
	return whole
}

// differ returns where and how a value differs from its schema, or "" if it does not.
func (d Description) differ(s schema, value any, at string) string {
	s = d.resolve(s)
	if one, is := s["oneOf"].([]any); is {
		var found []string
		for _, o := range one {
			found = append(found, d.differ(o.(schema), value, at))
		}
		if fits := slices.DeleteFunc(slices.Clone(found), func(f string) bool { return f != "" }); len(fits) != 1 {
			return fmt.Sprintf("%s fits %d of %d: %s", at, len(fits), len(one), strings.Join(found, "; "))
		}
		return ""
	}
	if c, is := s["const"]; is && value != c {
		return fmt.Sprintf("%s is %v, want %v", at, value, c)
	}
	if e, is := s["enum"].([]any); is && !slices.Contains(e, value) {
		return fmt.Sprintf("%s is %v, want one of %v", at, value, e)
	}
	if !isType(s["type"], value) {
		return fmt.Sprintf("%s is %v, want %v", at, value, s["type"])
	}
	switch v := value.(type) {
	case string:
		return differText(s, v, at)
	case float64:
		if least, is := s["minimum"].(float64); is && v < least {
			return fmt.Sprintf("%s is %v, want at least %v", at, v, least)
		}
	case []any:
		of, _ := s["items"].(schema)
		for n, item := range v {
			if found := d.differ(of, item, fmt.Sprintf("%s/%d", at, n)); found != "" {
				return found
			}
		}
	case map[string]any:
		return d.differObject(s, v, at)
	}
	return ""
}

func (d Description) differObject(s schema, v map[string]any, at string) string {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, there := v[name.(string)]; !there {
			return fmt.Sprintf("%s/%s is missing", at, name)
		}
	}
	members, _ := s["properties"].(schema)
	for name, value := range v {
		of, there := members[name].(schema)
		if more, is := s["additionalProperties"]; !there && is && more != false {
			of, _ = more.(schema)
			there = true
		}
		if !there && members != nil {
			return fmt.Sprintf("%s/%s is described nowhere", at, name)
		}
		if found := d.differ(of, value, at+"/"+name); found != "" {
			return found
		}
	}
	return ""
}
