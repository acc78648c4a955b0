// Package sdk drives the official Go clients against a real server on a real PostgreSQL.
//
// tests/sdk/test_go.py starts the server and runs these tests.
package sdk

import (
	"context"
	"errors"
	"net/http"
	"os"
	"regexp"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// Keys of one workspace: two that may write, one that may only read; and one that the server does not know.
const (
	writerKey   = "MEMORY_KEY"
	secondKey   = "MEMORY_SECOND_KEY"
	readerKey   = "MEMORY_READ_ONLY_KEY"
	unknownText = "mk_nobody-was-given-this-one"
)

var requestID = regexp.MustCompile(`^req_\w+$`)

func given(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: tests/sdk/test_go.py starts the server and these tests", name)
	}
	return value
}

// exchange is a request with its response.
type exchange struct {
	request  *http.Request
	response *http.Response
}

// wire is what went over it.
type wire struct{ exchanges []exchange }

func (w *wire) note(request *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	response, err := next(request)
	w.exchanges = append(w.exchanges, exchange{request, response})
	return response, err
}

// newClient is a client of the newest SDK with its default retries, and the exchanges that it will have.
func newClient(t *testing.T, key string) (*anthropic.Client, *wire) {
	t.Helper()
	over := &wire{}
	client := anthropic.NewClient(
		option.WithoutEnvironmentDefaults(),
		option.WithBaseURL(given(t, "MEMORY_SERVER")),
		option.WithAPIKey(key),
		option.WithMiddleware(over.note),
	)
	return &client, over
}

func connect(t *testing.T) (context.Context, *anthropic.Client) {
	t.Helper()
	client, _ := newClient(t, given(t, writerKey))
	return t.Context(), client
}

func newStore(t *testing.T, client *anthropic.Client, name string) *anthropic.BetaManagedAgentsMemoryStore {
	t.Helper()
	store, err := client.Beta.MemoryStores.New(t.Context(), anthropic.BetaMemoryStoreNewParams{Name: name})
	complete(t, store, err)
	return store
}

func newMemory(t *testing.T, client *anthropic.Client, store, path, content string) *anthropic.BetaManagedAgentsMemory {
	t.Helper()
	memory, err := client.Beta.MemoryStores.Memories.New(t.Context(), store, anthropic.BetaMemoryStoreMemoryNewParams{
		Path: path, Content: anthropic.String(content),
	})
	complete(t, memory, err)
	return memory
}

// refusal is the SDK's error of a request that must be refused: its status, type and request id are checked.
func refusal(t *testing.T, err error, status int, kind anthropic.ErrorType) *anthropic.Error {
	t.Helper()
	var refused *anthropic.Error
	if !errors.As(err, &refused) {
		t.Fatalf("not refused by the API: %v", err)
	}
	if refused.StatusCode != status || refused.Type() != kind || refused.Message == "" {
		t.Fatalf("expected %d %s: %v", status, kind, refused)
	}
	var body struct {
		Type      string
		RequestID string `json:"request_id"`
	}
	decode(t, refused.RawJSON(), &body)
	equal(t, body.Type, "error")
	equal(t, body.RequestID, refused.RequestID)
	if !requestID.MatchString(body.RequestID) {
		t.Fatalf("not a request id: %q", body.RequestID)
	}
	return refused
}

// all is what an auto-paged list yields, each entry complete.
func all[Entry any](t *testing.T, pages interface {
	Next() bool
	Current() Entry
	Err() error
}) (entries []Entry) {
	t.Helper()
	for pages.Next() {
		complete(t, pages.Current(), nil)
		entries = append(entries, pages.Current())
	}
	if pages.Err() != nil {
		t.Fatal(pages.Err())
	}
	return entries
}
