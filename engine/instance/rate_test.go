package instance

import "testing"

func TestRatesAreReadAsTheyAreWritten(t *testing.T) {
	tests := []struct {
		text string
		want Rate
		ok   bool
	}{
		{"50/s burst 1000", Rate{50, 1000}, true},
		{"20/min", Rate{20.0 / 60, 20}, true},
		{"7/h burst 3", Rate{7.0 / 3600, 3}, true},
		{"off", Rate{}, true},
		{"", Rate{}, false},
		{"0/s", Rate{}, false},
		{"-1/s", Rate{}, false},
		{"1.5/s", Rate{}, false},
		{"10", Rate{}, false},
		{"10/day", Rate{}, false},
		{"10/s burst", Rate{}, false},
		{"10/s burst 0", Rate{}, false},
		{"10/s upto 5", Rate{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			r, err := ParseRate(tt.text)
			if r != tt.want || (err == nil) != tt.ok {
				t.Fatalf("ParseRate(%q) = %v, %v, want %v, ok %t", tt.text, r, err, tt.want, tt.ok)
			}
			if tt.ok && r.String() != tt.text {
				t.Errorf("String = %q, want %q", r, tt.text)
			}
		})
	}
}
