package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/respjson"
)

// What is required and may be null: Go's types do not say so.
var mayBeNull = map[string]bool{
	"BetaManagedAgentsMemoryStore.ArchivedAt":   true,
	"BetaManagedAgentsSession.ArchivedAt":       true,
	"BetaManagedAgentsSession.Budget":           true,
	"BetaManagedAgentsSession.Title":            true,
	"BetaManagedAgentsSessionAgent.Description": true,
	"BetaManagedAgentsSessionAgent.Multiagent":  true,
	"BetaManagedAgentsSessionAgent.System":      true,
}

// complete fails unless a request was answered and every field of its answer, at any depth, was there and decoded.
func complete(t *testing.T, answer any, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if wrong := undecoded(reflect.ValueOf(answer), "answer"); len(wrong) > 0 {
		t.Fatalf("%T did not decode: %v", answer, wrong)
	}
}

// undecoded tells which fields of a response are missing, null where they may not be, of another type or unknown.
//
// The SDK notes in each struct's JSON field what was on the wire.
func undecoded(value reflect.Value, place string) (wrong []string) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			return []string{place + " is of an unknown type"}
		}
		return undecoded(value.Elem(), place)
	case reflect.Slice:
		for i := range value.Len() {
			wrong = append(wrong, undecoded(value.Index(i), fmt.Sprintf("%s[%d]", place, i))...)
		}
		return wrong
	case reflect.Struct:
		return undecodedStruct(value, place)
	}
	return nil
}

func undecodedStruct(value reflect.Value, place string) (wrong []string) {
	if union := value.MethodByName("AsAny"); union.IsValid() {
		return undecoded(union.Call(nil)[0], place)
	}
	notes := value.FieldByName("JSON")
	if !notes.IsValid() {
		return nil // a time
	}
	for i := range notes.NumField() {
		name := notes.Type().Field(i).Name
		switch note := notes.Field(i); {
		case name == "ExtraFields":
			for _, extra := range note.MapKeys() {
				wrong = append(wrong, fmt.Sprintf("%s.%s is unknown", place, extra))
			}
		case note.Type() == reflect.TypeFor[respjson.Field]():
			field, _ := value.Type().FieldByName(name)
			wrong = append(wrong, undecodedField(value, field, note.Interface().(respjson.Field), place+"."+name)...)
		}
	}
	return wrong
}

func undecodedField(owner reflect.Value, field reflect.StructField, note respjson.Field, place string) []string {
	_, constant := field.Tag.Lookup("default")
	required := constant || field.Tag.Get("api") == "required"
	nullable := !required || mayBeNull[owner.Type().Name()+"."+field.Name] // what is optional is null (CONTRACT B.1)
	switch {
	case note.Raw() == "":
		return []string{place + " is missing"}
	case note.Raw() == respjson.Null && nullable:
		return nil
	case !note.Valid():
		return []string{fmt.Sprintf("%s is %s", place, note.Raw())}
	}
	return undecoded(owner.FieldByIndex(field.Index), place)
}

// F.116: what did not decode is noticed, at any depth.
func TestWhatDoesNotDecodeIsNoticed(t *testing.T) {
	var version anthropic.BetaManagedAgentsMemoryVersion
	decode(t, `{"id": null, "content_size_bytes": "many", "created_by": {"type": "api_actor"}, "colour": "red"}`, &version)
	wrong := undecoded(reflect.ValueOf(version), "version")
	for _, expected := range []string{
		"version.ID is null",
		`version.ContentSizeBytes is "many"`,
		"version.MemoryID is missing",
		"version.CreatedBy.APIKeyID is missing",
		"version.colour is unknown",
	} {
		if !slices.Contains(wrong, expected) {
			t.Errorf("%q is not among %q", expected, wrong)
		}
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

func equal(t *testing.T, found, expected any) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Fatalf("found    %#v\nexpected %#v", found, expected)
	}
}
