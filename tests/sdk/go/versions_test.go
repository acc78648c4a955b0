package sdk

import (
	"slices"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

// lineage is a store whose one memory was created, edited, renamed with another key and deleted, beside another memory.
func lineage(t *testing.T, client *anthropic.Client) (store, memory string, other *anthropic.BetaManagedAgentsMemory) {
	t.Helper()
	second, _ := newClient(t, given(t, secondKey))
	store = newStore(t, client, "History").ID
	memory = newMemory(t, client, store, "/a.md", "one").ID
	edited, err := client.Beta.MemoryStores.Memories.Update(t.Context(), memory, anthropic.BetaMemoryStoreMemoryUpdateParams{
		MemoryStoreID: store, Content: anthropic.String("two"),
	})
	complete(t, edited, err)
	renamed, err := second.Beta.MemoryStores.Memories.Update(t.Context(), memory, anthropic.BetaMemoryStoreMemoryUpdateParams{
		MemoryStoreID: store, Path: anthropic.String("/b.md"),
	})
	complete(t, renamed, err)
	gone := anthropic.BetaMemoryStoreMemoryDeleteParams{MemoryStoreID: store}
	deleted, err := client.Beta.MemoryStores.Memories.Delete(t.Context(), memory, gone)
	complete(t, deleted, err)
	return store, memory, newMemory(t, client, store, "/other.md", "other")
}

// F.116, F.201 to F.204, F.208, F.209
func TestALineageIsListedNewestFirstAndEachVersionRetrieved(t *testing.T) {
	ctx, client := connect(t)
	store, memory, _ := lineage(t, client)
	versions := client.Beta.MemoryStores.MemoryVersions
	params := anthropic.BetaMemoryStoreMemoryVersionListParams{MemoryID: anthropic.String(memory), Limit: anthropic.Int(1)}
	var listed, contents []string
	for _, version := range all(t, versions.ListAutoPaging(ctx, store, params)) {
		listed = append(listed, string(version.Operation)+" "+version.Path)
		equal(t, version.JSON.Content.Raw(), "null")
		whole, err := versions.Get(ctx, version.ID, anthropic.BetaMemoryStoreMemoryVersionGetParams{MemoryStoreID: store})
		complete(t, whole, err)
		contents = append(contents, whole.JSON.Content.Raw())
		equal(t, whole.JSON.ContentSha256.Valid(), whole.Operation != "deleted")
	}
	equal(t, listed, []string{"deleted /b.md", "modified /b.md", "modified /a.md", "created /a.md"})
	equal(t, contents, []string{"null", `"two"`, `"two"`, `"one"`})
}

// F.116, F.205 to F.207, F.212, F.213
func TestEveryFilterOfTheVersionsSelects(t *testing.T) {
	ctx, client := connect(t)
	store, memory, other := lineage(t, client)
	versions := client.Beta.MemoryStores.MemoryVersions
	everything := all(t, versions.ListAutoPaging(ctx, store, anthropic.BetaMemoryStoreMemoryVersionListParams{}))
	equal(t, len(everything), 5)
	first, second := everything[0].CreatedBy.APIKeyID, everything[2].CreatedBy.APIKeyID
	if first == second || everything[0].CreatedBy.Type != "api_actor" {
		t.Fatalf("two keys, one id: %s", first)
	}
	type filters = anthropic.BetaMemoryStoreMemoryVersionListParams
	for _, expected := range []struct {
		filters
		found []int
	}{
		{filters{MemoryID: anthropic.String(memory)}, []int{1, 2, 3, 4}},
		{filters{MemoryID: anthropic.String(other.ID)}, []int{0}},
		{filters{Operation: anthropic.BetaManagedAgentsMemoryVersionOperationCreated}, []int{0, 4}},
		{filters{APIKeyID: anthropic.String(second)}, []int{2}},
		{filters{APIKeyID: anthropic.String(first), Operation: "modified"}, []int{3}},
		{filters{SessionID: anthropic.String("sesn_nobody")}, nil},
		{filters{ServiceAccountID: anthropic.String("svac_nobody")}, nil},
		{filters{
			CreatedAtGte: anthropic.Time(everything[3].CreatedAt), CreatedAtLte: anthropic.Time(everything[1].CreatedAt),
		}, []int{1, 2, 3}},
	} {
		expected.Limit = anthropic.Int(2)
		var found []int
		for _, version := range all(t, versions.ListAutoPaging(ctx, store, expected.filters)) {
			found = append(found, slices.IndexFunc(everything, func(one anthropic.BetaManagedAgentsMemoryVersion) bool {
				return one.ID == version.ID
			}))
		}
		equal(t, found, expected.found)
	}
}

// F.116, F.215 to F.219, F.221
func TestAVersionIsRedactedButNoHead(t *testing.T) {
	ctx, client := connect(t)
	store, _, other := lineage(t, client)
	versions := client.Beta.MemoryStores.MemoryVersions
	in := anthropic.BetaMemoryStoreMemoryVersionRedactParams{MemoryStoreID: store}
	_, err := versions.Redact(ctx, other.MemoryVersionID, in)
	refusal(t, err, 400, anthropic.ErrorTypeInvalidRequestError)
	edited, err := client.Beta.MemoryStores.Memories.Update(ctx, other.ID, anthropic.BetaMemoryStoreMemoryUpdateParams{
		MemoryStoreID: store, Content: anthropic.String("newer"),
	})
	complete(t, edited, err)

	redacted, err := versions.Redact(ctx, other.MemoryVersionID, in)
	complete(t, redacted, err)
	equal(t, redacted.JSON.RedactedAt.Valid(), true)
	equal(t, redacted.RedactedBy.RawJSON(), redacted.CreatedBy.RawJSON())
	for _, field := range []string{
		redacted.JSON.Path.Raw(), redacted.JSON.Content.Raw(),
		redacted.JSON.ContentSha256.Raw(), redacted.JSON.ContentSizeBytes.Raw(),
	} {
		equal(t, field, "null")
	}
	again, err := versions.Redact(ctx, other.MemoryVersionID, in)
	complete(t, again, err)
	equal(t, again.RawJSON(), redacted.RawJSON())
}
