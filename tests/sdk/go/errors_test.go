package sdk

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

type ask = func(context.Context, *anthropic.Client) error

// refusedOnce is a request that is refused, and made once: the SDK retries what it is not told to leave (F.112).
func refusedOnce(t *testing.T, key string, request ask, status int, kind anthropic.ErrorType) *anthropic.Error {
	t.Helper()
	client, over := newClient(t, key)
	refused := refusal(t, request(t.Context(), client), status, kind)
	equal(t, len(over.exchanges), 1)
	header := over.exchanges[0].response.Header
	equal(t, header.Get("request-id"), refused.RequestID)
	equal(t, strings.Split(header.Get("content-type"), ";")[0], "application/json")
	if status == 409 {
		equal(t, header.Get("x-should-retry"), "false")
	}
	return refused
}

func createMemory(store, path, content string) ask {
	return func(ctx context.Context, client *anthropic.Client) error {
		_, err := client.Beta.MemoryStores.Memories.New(ctx, store, anthropic.BetaMemoryStoreMemoryNewParams{
			Path: path, Content: anthropic.String(content),
		})
		return err
	}
}

func updateMemory(memory string, params anthropic.BetaMemoryStoreMemoryUpdateParams) ask {
	return func(ctx context.Context, client *anthropic.Client) error {
		_, err := client.Beta.MemoryStores.Memories.Update(ctx, memory, params)
		return err
	}
}

func deleteMemory(memory string, params anthropic.BetaMemoryStoreMemoryDeleteParams) ask {
	return func(ctx context.Context, client *anthropic.Client) error {
		_, err := client.Beta.MemoryStores.Memories.Delete(ctx, memory, params)
		return err
	}
}

func createStore(name string) ask {
	return func(ctx context.Context, client *anthropic.Client) error {
		_, err := client.Beta.MemoryStores.New(ctx, anthropic.BetaMemoryStoreNewParams{Name: name})
		return err
	}
}

func listStores(params anthropic.BetaMemoryStoreListParams) ask {
	return func(ctx context.Context, client *anthropic.Client) error {
		_, err := client.Beta.MemoryStores.List(ctx, params)
		return err
	}
}

func raw(method, path string, body any) ask {
	return func(ctx context.Context, client *anthropic.Client) error {
		return client.Execute(ctx, method, path, body, nil)
	}
}

// F.107, F.108, F.116
func TestWhatIsMalformedNamesItsField(t *testing.T) {
	_, client := connect(t)
	store := newStore(t, client, "Errors").ID
	for _, expected := range []struct {
		names   string
		request ask
	}{
		{"name", createStore("")},
		{"colour", raw("POST", "v1/memory_stores", map[string]string{"name": "a", "colour": "red"})},
		{"limit", listStores(anthropic.BetaMemoryStoreListParams{Limit: anthropic.Int(101)})},
		{"page", listStores(anthropic.BetaMemoryStoreListParams{Page: anthropic.String("page_garbage")})},
		{"path", createMemory(store, "/../a", "")},
		{"content", raw("POST", "v1/memory_stores/"+store+"/memories", map[string]string{"path": "/a"})},
		{"JSON", raw("POST", "v1/memory_stores", []byte(`{"name":`))},
	} {
		refused := refusedOnce(t, given(t, writerKey), expected.request, 400, anthropic.ErrorTypeInvalidRequestError)
		if !regexp.MustCompile(expected.names).MatchString(refused.Message) {
			t.Errorf("%q does not name %s", refused.Message, expected.names)
		}
	}
}

// F.99, F.116
func TestAKeyThatNobodyWasGivenIsRefused(t *testing.T) {
	request := listStores(anthropic.BetaMemoryStoreListParams{})
	refusedOnce(t, unknownText, request, 401, anthropic.ErrorTypeAuthenticationError)
}

// F.116
func TestAKeyThatMayOnlyReadWritesNothing(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Errors").ID
	memory := newMemory(t, client, store, "/a.md", "a").ID
	reader, _ := newClient(t, given(t, readerKey))
	read, err := reader.Beta.MemoryStores.Memories.Get(ctx, memory, anthropic.BetaMemoryStoreMemoryGetParams{MemoryStoreID: store})
	complete(t, read, err)
	equal(t, read.Content, "a")
	for _, request := range []ask{
		createStore("Mine"),
		createMemory(store, "/mine.md", "mine"),
		updateMemory(memory, anthropic.BetaMemoryStoreMemoryUpdateParams{MemoryStoreID: store, Content: anthropic.String("b")}),
		deleteMemory(memory, anthropic.BetaMemoryStoreMemoryDeleteParams{MemoryStoreID: store}),
	} {
		refusedOnce(t, given(t, readerKey), request, 403, anthropic.ErrorTypePermissionError)
	}
}

// F.110, F.111, F.116
func TestWhatIsNotThereIsNotFound(t *testing.T) {
	_, client := connect(t)
	store, other := newStore(t, client, "Errors").ID, newStore(t, client, "Other").ID
	memory := newMemory(t, client, store, "/a.md", "a").ID
	for _, request := range []ask{
		raw("GET", "v1/memory_stores/memstore_nobody", nil),
		raw("GET", "v1/sessions/sesn_nobody", nil),
		raw("GET", "v1/nothing", nil),
		updateMemory(memory, anthropic.BetaMemoryStoreMemoryUpdateParams{MemoryStoreID: other}),
		deleteMemory("mem_../x?y", anthropic.BetaMemoryStoreMemoryDeleteParams{MemoryStoreID: store}),
	} {
		refusedOnce(t, given(t, writerKey), request, 404, anthropic.ErrorTypeNotFoundError)
	}
}

// F.110, F.116
func TestAnotherMethodOnAKnownPathIsRefused(t *testing.T) {
	_, client := connect(t)
	path := "v1/memory_stores/" + newStore(t, client, "Errors").ID
	for _, method := range []string{"PATCH", "PUT"} {
		request := raw(method, path, map[string]string{"name": "a"})
		refused := refusedOnce(t, given(t, writerKey), request, 405, anthropic.ErrorTypeInvalidRequestError)
		if allow := refused.Response.Header.Get("allow"); !strings.Contains(allow, "POST") {
			t.Errorf("allow: %q", allow)
		}
	}
}

// F.112, F.116, F.156, F.158, F.159
func TestAPathConflictTellsWhoHoldsWhichPath(t *testing.T) {
	_, client := connect(t)
	store := newStore(t, client, "Errors").ID
	holder := newMemory(t, client, store, "/notes/todo.md", "milk")
	other := newMemory(t, client, store, "/other.md", "other").ID
	for _, request := range []ask{
		createMemory(store, "/notes/todo.md", "milk"),
		createMemory(store, "/notes", ""),
		createMemory(store, "/notes/todo.md/x", ""),
		updateMemory(other, anthropic.BetaMemoryStoreMemoryUpdateParams{MemoryStoreID: store, Path: anthropic.String("/notes/todo.md")}),
	} {
		refused := refusedOnce(t, given(t, writerKey), request, 409, anthropic.ErrorTypeMemoryPathConflictError)
		var body struct {
			Error struct {
				Type, Message       string
				ConflictingMemoryID string `json:"conflicting_memory_id"`
				ConflictingPath     string `json:"conflicting_path"`
			}
		}
		decode(t, refused.RawJSON(), &body)
		equal(t, body.Error.ConflictingMemoryID, holder.ID)
		equal(t, body.Error.ConflictingPath, holder.Path)
	}
}

// F.112, F.116, F.171, F.182
func TestAStaleHashIsRefusedAndChangesNothing(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Errors").ID
	memory := newMemory(t, client, store, "/a.md", "milk")
	for _, request := range []ask{
		updateMemory(memory.ID, anthropic.BetaMemoryStoreMemoryUpdateParams{
			MemoryStoreID: store, Content: anthropic.String("x"), Precondition: holding("stale"),
		}),
		deleteMemory(memory.ID, anthropic.BetaMemoryStoreMemoryDeleteParams{
			MemoryStoreID: store, ExpectedContentSha256: anthropic.String(hashOf("stale")),
		}),
	} {
		refusedOnce(t, given(t, writerKey), request, 409, anthropic.ErrorTypeMemoryPreconditionFailedError)
	}
	still, err := client.Beta.MemoryStores.Memories.Get(ctx, memory.ID, anthropic.BetaMemoryStoreMemoryGetParams{
		MemoryStoreID: store, View: anthropic.BetaManagedAgentsMemoryViewBasic,
	})
	complete(t, still, err)
	equal(t, json.RawMessage(still.RawJSON()), json.RawMessage(memory.RawJSON()))
}
