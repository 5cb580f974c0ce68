package server_test

import (
	"strings"
	"testing"
)

// The server accepts a member of a request's body only under its exact name.
func TestBodiesOfConversationsAreReadExactly(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	long := strings.Repeat("a", 500)
	for name, tt := range map[string]struct {
		path, body    string
		status        int
		code, pointer string
	}{
		"another spelling":               {k.path + "/messages", `{"MESSAGE":"AAAA"}`, 422, "invalid_parameter", "/MESSAGE"},
		"a spelling that folds":          {k.path + "/messages", `{"me\u017fsage":"AAAA"}`, 422, "invalid_parameter", "/meſsage"},
		"two spellings":                  {k.path + "/messages", `{"message":"AAAA","Message":"AAAA"}`, 422, "invalid_parameter", "/Message"},
		"a member twice":                 {k.path + "/messages", `{"message":"AAAA","message":"AAAA"}`, 400, "bad_json", ""},
		"a member that nobody knows":     {k.path + "/reset", `{"a/b":1}`, 422, "invalid_parameter", "/a~1b"},
		"a name that is long":            {k.path + "/reset", `{"` + long + `":1}`, 422, "invalid_parameter", "/" + long[:99]},
		"another type":                   {k.path + "/commits", `{"commit":"AAAA","welcomes":["AAAA",7]}`, 422, "invalid_parameter", "/welcomes/1"},
		"no base64":                      {k.path + "/commits", `{"commit":"?"}`, 422, "invalid_parameter", "/commit"},
		"a number in another one's name": {"/api/mls/recovery-reports", `{"EPOCH":1}`, 422, "invalid_parameter", "/EPOCH"},
	} {
		var got struct {
			Error  string
			Errors []struct{ Pointer string }
		}
		k.send(tt.path, tt.body, bearerToken(k.tokens[k.device.Identity]), header("Content-Type", "application/json"), header("Idempotency-Key", "key")).want(t, tt.status).decode(t, &got)
		pointer := ""
		if len(got.Errors) == 1 {
			pointer = got.Errors[0].Pointer
		}
		if got.Error != tt.code || pointer != tt.pointer {
			t.Errorf("%s: %+v, want %s at %s", name, got, tt.code, tt.pointer)
		}
	}
}
