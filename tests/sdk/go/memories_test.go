package sdk

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func holding(content string) anthropic.BetaManagedAgentsPreconditionParam {
	return anthropic.BetaManagedAgentsPreconditionParam{ContentSha256: anthropic.String(hashOf(content))}
}

// F.116, F.138 to F.142
func TestAMemoryIsCreatedAndRetrievedInBothViews(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Notes")
	content := "Zürich, 東京 \x00 \U0001F680\r\n"
	made := newMemory(t, client, store.ID, "/units.md", content)
	equal(t, made.JSON.Content.Raw(), "null")
	equal(t, made.ContentSha256, hashOf(content))
	equal(t, made.ContentSizeBytes, int64(len(content)))

	view := anthropic.BetaMemoryStoreMemoryGetParams{MemoryStoreID: store.ID}
	full, err := client.Beta.MemoryStores.Memories.Get(ctx, made.ID, view)
	complete(t, full, err)
	equal(t, full.Content, content)
	view.View = anthropic.BetaManagedAgentsMemoryViewBasic
	basic, err := client.Beta.MemoryStores.Memories.Get(ctx, made.ID, view)
	complete(t, basic, err)
	equal(t, basic.RawJSON(), made.RawJSON())

	echoed, err := client.Beta.MemoryStores.Memories.New(ctx, store.ID, anthropic.BetaMemoryStoreMemoryNewParams{
		Path: "/empty.md", Content: anthropic.String(""), View: anthropic.BetaManagedAgentsMemoryViewFull,
	})
	complete(t, echoed, err)
	equal(t, echoed.JSON.Content.Raw(), `""`)
}

// F.116, F.167 to F.171
func TestAMemoryIsUpdatedWithAPreconditionAndRenamed(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Notes")
	memories := client.Beta.MemoryStores.Memories
	first := newMemory(t, client, store.ID, "/a.md", "one")

	change := anthropic.BetaMemoryStoreMemoryUpdateParams{
		MemoryStoreID: store.ID, Precondition: holding("one"),
		Content: anthropic.String("two"), View: anthropic.BetaManagedAgentsMemoryViewFull,
	}
	second, err := memories.Update(ctx, first.ID, change)
	complete(t, second, err)
	equal(t, second.Content, "two")
	if second.MemoryVersionID == first.MemoryVersionID || !second.UpdatedAt.After(first.UpdatedAt) {
		t.Fatal("an update is a version of its own")
	}
	change.Content = anthropic.String("three")
	_, err = memories.Update(ctx, first.ID, change)
	refusal(t, err, 409, anthropic.ErrorTypeMemoryPreconditionFailedError)

	renamed, err := memories.Update(ctx, first.ID, anthropic.BetaMemoryStoreMemoryUpdateParams{
		MemoryStoreID: store.ID, Path: anthropic.String("/b/c.md"),
	})
	complete(t, renamed, err)
	equal(t, []string{renamed.ID, renamed.Path, renamed.ContentSha256}, []string{first.ID, "/b/c.md", hashOf("two")})
	unchanged, err := memories.Update(ctx, first.ID, anthropic.BetaMemoryStoreMemoryUpdateParams{MemoryStoreID: store.ID})
	complete(t, unchanged, err)
	equal(t, unchanged.RawJSON(), renamed.RawJSON())
}

// F.116, F.181, F.182
func TestAMemoryIsDeletedWithItsExpectedHash(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Notes")
	memory := newMemory(t, client, store.ID, "/a.md", "one")
	gone := anthropic.BetaMemoryStoreMemoryDeleteParams{
		MemoryStoreID: store.ID, ExpectedContentSha256: anthropic.String(hashOf("two")),
	}
	_, err := client.Beta.MemoryStores.Memories.Delete(ctx, memory.ID, gone)
	refusal(t, err, 409, anthropic.ErrorTypeMemoryPreconditionFailedError)
	gone.ExpectedContentSha256 = anthropic.String(hashOf("one"))
	deleted, err := client.Beta.MemoryStores.Memories.Delete(ctx, memory.ID, gone)
	complete(t, deleted, err)
	equal(t, deleted.ID, memory.ID)
	_, err = client.Beta.MemoryStores.Memories.Delete(ctx, memory.ID, gone)
	refusal(t, err, 404, anthropic.ErrorTypeNotFoundError)
}

// F.116, F.184 to F.193
func TestMemoriesAreListedByLevelPrefixAndView(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Notes")
	for _, path := range []string{"/a.md", "/notes/deep/x.md", "/notes/todo.md", "/notes-archive/old.md", "/z.md"} {
		newMemory(t, client, store.ID, path, path)
	}
	told := func(params anthropic.BetaMemoryStoreMemoryListParams) (entries []string) {
		params.Limit = anthropic.Int(1)
		for _, entry := range all(t, client.Beta.MemoryStores.Memories.ListAutoPaging(ctx, store.ID, params)) {
			switch entry := entry.AsAny().(type) {
			case anthropic.BetaManagedAgentsMemory:
				entries = append(entries, entry.Path+entry.Content)
			case anthropic.BetaManagedAgentsMemoryPrefix:
				entries = append(entries, "in "+entry.Path)
			}
		}
		return entries
	}
	equal(t, told(anthropic.BetaMemoryStoreMemoryListParams{}),
		[]string{"/a.md", "/notes-archive/old.md", "/notes/deep/x.md", "/notes/todo.md", "/z.md"})
	equal(t, told(anthropic.BetaMemoryStoreMemoryListParams{Depth: anthropic.Int(1)}),
		[]string{"/a.md", "in /notes-archive/", "in /notes/", "/z.md"})
	equal(t, told(anthropic.BetaMemoryStoreMemoryListParams{Depth: anthropic.Int(1), PathPrefix: anthropic.String("/notes/")}),
		[]string{"in /notes/deep/", "/notes/todo.md"})
	equal(t, told(anthropic.BetaMemoryStoreMemoryListParams{
		PathPrefix: anthropic.String("/notes-archive/"), View: anthropic.BetaManagedAgentsMemoryViewFull,
	}), []string{"/notes-archive/old.md/notes-archive/old.md"})
}

// F.116, F.185, F.195
func TestManyMemoriesPageByThemselvesAndAFullPageHoldsTwenty(t *testing.T) {
	client, over := newClient(t, given(t, writerKey))
	memories := client.Beta.MemoryStores.Memories
	store := newStore(t, client, "Many")
	for number := range 250 {
		newMemory(t, client, store.ID, fmt.Sprintf("/%03d.md", number), "text")
	}
	before := len(over.exchanges)
	params := anthropic.BetaMemoryStoreMemoryListParams{Limit: anthropic.Int(100)}
	found := all(t, memories.ListAutoPaging(t.Context(), store.ID, params))
	equal(t, len(over.exchanges)-before, 3)
	ids := map[string]bool{}
	for number, entry := range found {
		equal(t, entry.Path, fmt.Sprintf("/%03d.md", number))
		ids[entry.ID] = true
	}
	equal(t, len(ids), 250)

	page, err := memories.List(t.Context(), store.ID, anthropic.BetaMemoryStoreMemoryListParams{})
	complete(t, page, err)
	equal(t, len(page.Data), 20)
	params.View = anthropic.BetaManagedAgentsMemoryViewFull
	full, err := memories.List(t.Context(), store.ID, params)
	complete(t, full, err)
	equal(t, len(full.Data), 20)
	equal(t, full.Data[19].Content, "text")
	equal(t, full.JSON.NextPage.Valid(), true)
}
