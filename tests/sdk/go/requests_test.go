package sdk

import (
	"net/http"
	"strings"
	"testing"

	older "github.com/anthropics/anthropic-sdk-go"
	olderoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/v2"
)

// assertSent holds every request to what its SDK sends, and to an answer.
func assertSent(t *testing.T, over *wire, headers map[string]string, hasBeta bool) {
	t.Helper()
	betas := map[string]string{"memory_stores": "agent-memory-2026-07-22", "sessions": "managed-agents-2026-04-01"}
	for _, exchange := range over.exchanges {
		request := exchange.request
		for name, value := range headers {
			equal(t, request.Header.Get(name), value)
		}
		equal(t, request.Header.Get("anthropic-beta"), betas[strings.Split(request.URL.Path, "/")[2]])
		equal(t, request.URL.Query().Get("beta") == "true", hasBeta)
		equal(t, exchange.response.StatusCode, http.StatusOK)
	}
}

// F.98, F.101, F.102, F.104: the newest SDK sends Authorization and no ?beta=true.
func TestTheNewestSDKsRequests(t *testing.T) {
	key := given(t, writerKey)
	client, over := newClient(t, key)
	ctx := t.Context()
	store := newStore(t, client, "Tour").ID
	memory := newMemory(t, client, store, "/a.md", "one").ID
	session := newSession(t, client, attached(store)).ID
	_, err := client.Beta.Sessions.Delete(ctx, session, anthropic.BetaSessionDeleteParams{})
	equal(t, err, nil)
	_, err = client.Beta.MemoryStores.Memories.Delete(ctx, memory, anthropic.BetaMemoryStoreMemoryDeleteParams{MemoryStoreID: store})
	equal(t, err, nil)
	_, err = client.Beta.MemoryStores.Archive(ctx, store, anthropic.BetaMemoryStoreArchiveParams{})
	equal(t, err, nil)
	equal(t, len(over.exchanges), 6)
	assertSent(t, over, map[string]string{
		"Authorization": "Bearer " + key, "X-Api-Key": "", "anthropic-version": "2026-10-21",
	}, false)
}

// F.98, F.100, F.101, F.102, F.104, F.116: an older SDK sends X-Api-Key and ?beta=true; it decodes the answers, too.
func TestAnOlderSDKsRequests(t *testing.T) {
	key, over := given(t, writerKey), &wire{}
	client := older.NewClient(
		olderoption.WithBaseURL(given(t, "MEMORY_SERVER")), olderoption.WithAPIKey(key), olderoption.WithMiddleware(over.note),
	)
	ctx, stores, sessions := t.Context(), client.Beta.MemoryStores, client.Beta.Sessions
	store, err := stores.New(ctx, older.BetaMemoryStoreNewParams{Name: "Tour"})
	complete(t, store, err)
	memory, err := stores.Memories.New(ctx, store.ID, older.BetaMemoryStoreMemoryNewParams{Path: "/a.md", Content: older.String("one")})
	complete(t, memory, err)
	edited, err := stores.Memories.Update(ctx, memory.ID, older.BetaMemoryStoreMemoryUpdateParams{
		MemoryStoreID: store.ID, Content: older.String("two"),
	})
	complete(t, edited, err)
	all(t, stores.Memories.ListAutoPaging(ctx, store.ID, older.BetaMemoryStoreMemoryListParams{Depth: older.Int(1)}))
	all(t, stores.MemoryVersions.ListAutoPaging(ctx, store.ID, older.BetaMemoryStoreMemoryVersionListParams{Limit: older.Int(1)}))
	redacted, err := stores.MemoryVersions.Redact(ctx, memory.MemoryVersionID,
		older.BetaMemoryStoreMemoryVersionRedactParams{MemoryStoreID: store.ID})
	complete(t, redacted, err)

	session, err := sessions.New(ctx, older.BetaSessionNewParams{
		Agent: older.BetaSessionNewParamsAgentUnion{OfString: older.String("agent_a")}, EnvironmentID: "env_a",
	})
	equal(t, err, nil)
	_, err = sessions.Delete(ctx, session.ID, older.BetaSessionDeleteParams{})
	equal(t, err, nil)
	gone, err := stores.Memories.Delete(ctx, memory.ID, older.BetaMemoryStoreMemoryDeleteParams{MemoryStoreID: store.ID})
	complete(t, gone, err)
	archived, err := stores.Archive(ctx, store.ID, older.BetaMemoryStoreArchiveParams{})
	complete(t, archived, err)
	deleted, err := stores.Delete(ctx, store.ID, older.BetaMemoryStoreDeleteParams{})
	complete(t, deleted, err)
	assertSent(t, over, map[string]string{"Authorization": "", "X-Api-Key": key, "anthropic-version": "2023-06-01"}, true)
}
