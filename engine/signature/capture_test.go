package signature

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestACaptureIsReadAsItWasSent(t *testing.T) {
	const raw = "POST /inbox?a=b HTTP/1.1\r\nHost: example.org\r\nContent-Type: application/activity+json\r\nContent-Length: 18\r\n\r\n" + note + "x"
	curl := "* Connected to example.org\n} [5 bytes data]\n> POST /inbox?a=b HTTP/2\n> Host: example.org\n> content-type: application/activity+json\n> Content-Length: 18\n> \n" +
		"* upload completely sent off\n} [18 bytes data]\n< HTTP/2 401 \n< content-type: application/problem+json\n< \n{ [200 bytes data]\n" + note + "x\n"
	for name, text := range map[string]string{
		"raw":                          raw,
		"with the lines of a file":     strings.ReplaceAll(raw, "\r\n", "\n"),
		"with a line break at the end": "\n" + raw + "\n\n",
		"curl -v":                      curl,
		"curl -v on a terminal":        strings.ReplaceAll(curl, "\n", "\r\n"),
		"curl -v, without the end of the headers": strings.Replace(curl, "> \n", "", 1),
		"curl -v, sent again":                     curl + "> POST /elsewhere HTTP/2\n> Host: other.example\n> \n",
		"chunked":                                 strings.Replace(strings.Replace(raw, "Content-Length: 18", "Transfer-Encoding: chunked", 1), note+"x", "b\r\n"+note[:11]+"\r\n7\r\n"+note[11:]+"x\r\n0\r\n\r\n", 1),
		"without a length":                        strings.Replace(raw, "Content-Length: 18\r\n", "", 1),
		"an answer to HTTP/2":                     strings.Replace(raw, "HTTP/1.1", "HTTP/2.0", 1),
	} {
		t.Run(name, func(t *testing.T) {
			r, body, err := ReadCapture(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if r.Method != "POST" || r.RequestURI != "/inbox?a=b" || r.Host != "example.org" || r.Header.Get("Content-Type") != "application/activity+json" || string(body) != note+"x" {
				t.Errorf("read %s %s %s %v %q", r.Method, r.RequestURI, r.Host, r.Header, body)
			}
		})
	}
}

func TestACaptureOfAGetHasNoBody(t *testing.T) {
	for _, end := range []string{"", "\n", "\r\n", "\n\n", "\r\n\r\n", "\n\n \n"} {
		r, body, err := ReadCapture(strings.NewReader("GET /users/alice HTTP/1.1\nHost: example.org" + end))
		if err != nil || r.Host != "example.org" || len(body) > 0 {
			t.Errorf("end %q: %v, body %q, %v", end, r, body, err)
		}
	}
}

func TestACaptureThatIsNoneIsRefused(t *testing.T) {
	const head = "POST /inbox HTTP/1.1\nHost: example.org\n"
	tests := []struct {
		name, text string
		want       fault.Kind
	}{
		{"nothing", "", fault.Invalid},
		{"words", "it does not work\n", fault.Invalid},
		{"an answer", "HTTP/1.1 401 Unauthorized\n\n", fault.Invalid},
		{"an answer to curl", "* Connected\n< HTTP/1.1 401 Unauthorized\n< \n", fault.Invalid},
		{"a header without a colon", head + "Date\n\n", fault.Invalid},
		{"two hosts", head + "host: other.example\n\n", fault.Invalid},
		{"chunks that are none", head + "Transfer-Encoding: chunked\n\n" + note, fault.Invalid},
		{"chunks cut off", head + "Transfer-Encoding: chunked\n\n12\r\nabc", fault.Invalid},
		{"64 KiB of headers", head + "X: " + strings.Repeat("x", maxCaptureHead) + "\n\n", fault.TooLarge},
		{"a body over 1 MiB", head + "\n" + strings.Repeat("x", maxCaptureBody+1), fault.TooLarge},
		{"no end", strings.Repeat("x", 2<<20), fault.TooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r, _, err := ReadCapture(strings.NewReader(tt.text)); fault.KindOf(err) != tt.want {
				t.Errorf("ReadCapture = %v, %v, want kind %d", r, err, tt.want)
			}
		})
	}
	if _, body, err := ReadCapture(strings.NewReader(head + "\n" + strings.Repeat("x", maxCaptureBody))); err != nil || len(body) != maxCaptureBody {
		t.Errorf("a body of 1 MiB: %d bytes, %v", len(body), err)
	}
	most := head + "X: " + strings.Repeat("x", maxCaptureHead-len(head)-len("X: \n\n")) + "\n\n"
	if r, _, err := ReadCapture(strings.NewReader(most)); err != nil || r.Header.Get("X") == "" {
		t.Errorf("headers of %d bytes, which is the most: %v", len(most), err)
	}
}

// FuzzReadCapture checks that ReadCapture either refuses a text or reads it within its bounds. A
// request that was read can be examined.
func FuzzReadCapture(f *testing.F) {
	f.Add([]byte("POST /inbox HTTP/1.1\r\nHost: example.org\r\nContent-Length: 2\r\nSignature: keyId=\"a\"\r\n\r\n{}\n"))
	f.Add([]byte("* x\n> GET / HTTP/2\n> host: example.org\n> signature-input: a=()\n> signature: a=:AA==:\n> \n< HTTP/2 200\n"))
	f.Add([]byte("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n1\r\nx\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		kept := bytes.Clone(text)
		r, body, err := ReadCapture(bytes.NewReader(text))
		if !bytes.Equal(kept, text) {
			t.Fatal("the capture was changed")
		}
		if err != nil {
			if k := fault.KindOf(err); k != fault.Invalid && k != fault.TooLarge {
				t.Fatalf("ReadCapture = %v", err)
			}
			return
		}
		if len(body) > maxCaptureBody {
			t.Fatalf("a body of %d bytes", len(body))
		}
		x, err := Examine(r, body, Options{Origin: origin, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		claims, err := Parse(r, body, Options{Origin: origin, Now: now})
		if why := disagreement(x, claims, err); why != "" {
			t.Fatal(why)
		}
	})
}
