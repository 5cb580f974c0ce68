package main

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// drawMutants puts the mutants of a package into the order in which they are played. It takes one
// mutant of each operator in turn, so that even a few mutants are of many kinds. The order depends
// only on the seed and the package, not on which other packages are played.
func drawMutants(places []mutant, seed uint64, name string) []mutant {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	random := rand.New(rand.NewPCG(seed, h.Sum64()))
	places = append([]mutant(nil), places...)
	random.Shuffle(len(places), func(a, b int) { places[a], places[b] = places[b], places[a] })
	of := map[string][]mutant{}
	for _, m := range places {
		of[m.Operator] = append(of[m.Operator], m)
	}
	order := random.Perm(len(operators))
	drawn := make([]mutant, 0, len(places))
	for len(drawn) < len(places) {
		for _, n := range order {
			if left := of[operators[n].name]; len(left) > 0 {
				drawn = append(drawn, left[0])
				of[operators[n].name] = left[1:]
			}
		}
	}
	return drawn
}

// mutantsAt returns the mutants at a place, file:line or file:line:column.
func mutantsAt(places []mutant, place string) []mutant {
	var there []mutant
	for _, m := range places {
		if m.Place == place || strings.HasPrefix(m.Place, place+":") {
			there = append(there, m)
		}
	}
	return there
}
