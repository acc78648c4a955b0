package sdk

import (
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// F.116, F.117, F.122, F.125
func TestAStoreIsCreatedRetrievedAndUpdated(t *testing.T) {
	ctx, client := connect(t)
	stores := client.Beta.MemoryStores
	store := newStore(t, client, "Team notes")
	equal(t, []string{store.Name, store.Description}, []string{"Team notes", ""})
	equal(t, store.Metadata, map[string]string{})
	equal(t, store.CreatedAt, store.UpdatedAt)
	equal(t, store.JSON.ArchivedAt.Raw(), "null")

	again, err := stores.Get(ctx, store.ID, anthropic.BetaMemoryStoreGetParams{})
	complete(t, again, err)
	equal(t, again.RawJSON(), store.RawJSON())

	updated, err := stores.Update(ctx, store.ID, anthropic.BetaMemoryStoreUpdateParams{
		Description: anthropic.String("House rules"), Metadata: map[string]string{"team": "red", "place": "hall"},
	})
	complete(t, updated, err)
	equal(t, updated.Description, "House rules")
	if !updated.UpdatedAt.After(store.UpdatedAt) {
		t.Fatal("an update moves updated_at")
	}
	patched, err := stores.Update(ctx, store.ID, anthropic.BetaMemoryStoreUpdateParams{},
		option.WithJSONSet("metadata", map[string]any{"place": nil, "floor": "2"}), option.WithJSONSet("description", nil))
	complete(t, patched, err)
	equal(t, patched.Metadata, map[string]string{"team": "red", "floor": "2"})
	equal(t, patched.Description, "")
}

// F.116, F.128 to F.130
func TestStoresAreListedByTimeAndWithArchivedOnes(t *testing.T) {
	ctx, client := connect(t)
	stores := client.Beta.MemoryStores
	var made []*anthropic.BetaManagedAgentsMemoryStore
	for range 5 {
		made = append(made, newStore(t, client, "Listed"))
	}
	within := anthropic.BetaMemoryStoreListParams{
		CreatedAtGte: anthropic.Opt(made[0].CreatedAt), CreatedAtLte: anthropic.Opt(made[4].CreatedAt), Limit: anthropic.Int(2),
	}
	listed := func() (ids []string) {
		for _, store := range all(t, stores.ListAutoPaging(ctx, within)) {
			ids = append(ids, store.ID)
		}
		return ids
	}
	equal(t, listed(), []string{made[4].ID, made[3].ID, made[2].ID, made[1].ID, made[0].ID})

	_, err := stores.Archive(ctx, made[2].ID, anthropic.BetaMemoryStoreArchiveParams{})
	equal(t, err, nil)
	equal(t, listed(), []string{made[4].ID, made[3].ID, made[1].ID, made[0].ID})
	within.IncludeArchived = anthropic.Bool(true)
	equal(t, listed(), []string{made[4].ID, made[3].ID, made[2].ID, made[1].ID, made[0].ID})
}

// F.116, F.132 to F.134, F.136
func TestAStoreIsArchivedTwiceThenDeleted(t *testing.T) {
	ctx, client := connect(t)
	stores := client.Beta.MemoryStores
	store := newStore(t, client, "Passing")
	memory := newMemory(t, client, store.ID, "/a.md", "a")

	archived, err := stores.Archive(ctx, store.ID, anthropic.BetaMemoryStoreArchiveParams{})
	complete(t, archived, err)
	equal(t, archived.JSON.ArchivedAt.Valid(), true)
	again, err := stores.Archive(ctx, store.ID, anthropic.BetaMemoryStoreArchiveParams{})
	complete(t, again, err)
	equal(t, again.RawJSON(), archived.RawJSON())
	_, err = stores.Update(ctx, store.ID, anthropic.BetaMemoryStoreUpdateParams{Name: anthropic.String("Other")})
	refusal(t, err, 400, anthropic.ErrorTypeInvalidRequestError)
	_, err = stores.Memories.Update(ctx, memory.ID, anthropic.BetaMemoryStoreMemoryUpdateParams{MemoryStoreID: store.ID})
	refusal(t, err, 400, anthropic.ErrorTypeInvalidRequestError)

	deleted, err := stores.Delete(ctx, store.ID, anthropic.BetaMemoryStoreDeleteParams{})
	complete(t, deleted, err)
	equal(t, deleted.ID, store.ID)
	_, err = stores.Get(ctx, store.ID, anthropic.BetaMemoryStoreGetParams{})
	refusal(t, err, 404, anthropic.ErrorTypeNotFoundError)
	_, err = stores.Memories.Get(ctx, memory.ID, anthropic.BetaMemoryStoreMemoryGetParams{MemoryStoreID: store.ID})
	refusal(t, err, 404, anthropic.ErrorTypeNotFoundError)
}
