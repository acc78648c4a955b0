package sdk

import (
	"slices"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

type sessionParams = anthropic.BetaSessionNewParams

func attached(stores ...string) sessionParams {
	params := sessionParams{
		Agent:         anthropic.BetaSessionNewParamsAgentUnion{OfString: anthropic.String("agent_tidy")},
		EnvironmentID: "env_here",
	}
	for _, store := range stores {
		params.Resources = append(params.Resources, anthropic.BetaSessionNewParamsResourceUnion{
			OfMemoryStore: &anthropic.BetaManagedAgentsMemoryStoreResourceParam{MemoryStoreID: store},
		})
	}
	return params
}

func newSession(t *testing.T, client *anthropic.Client, params sessionParams) *anthropic.BetaManagedAgentsSession {
	t.Helper()
	session, err := client.Beta.Sessions.New(t.Context(), params)
	complete(t, session, err)
	return session
}

// F.116, F.223 to F.226, F.230
func TestASessionAttachesAStore(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Demo Memory")
	params := attached(store.ID)
	params.Title, params.Metadata = anthropic.String("Tidy"), map[string]string{"by": "hand"}
	params.Resources[0].OfMemoryStore.Access = anthropic.BetaManagedAgentsMemoryStoreResourceParamAccessReadOnly
	params.Resources[0].OfMemoryStore.Instructions = anthropic.String("Read first.")
	params.VaultIDs = []string{"vlt_a"}
	params.Budget.MaxListCost = anthropic.BetaMonetaryAmountParam{Amount: "500", Currency: "USD"}
	session := newSession(t, client, params)
	equal(t, session.VaultIDs, params.VaultIDs)
	equal(t, session.Budget.MaxListCost.Amount, "500")
	equal(t, []string{session.Title, string(session.Status), session.Agent.ID, session.EnvironmentID},
		[]string{"Tidy", "idle", "agent_tidy", "env_here"})
	resource := session.Resources[0].AsMemoryStore()
	equal(t, []string{resource.MemoryStoreID, string(resource.Access), resource.Instructions, resource.MountPath, resource.Name},
		[]string{store.ID, "read_only", "Read first.", "/mnt/memory/demo-memory", "Demo Memory"})

	again, err := client.Beta.Sessions.Get(ctx, session.ID, anthropic.BetaSessionGetParams{})
	complete(t, again, err)
	equal(t, again.Resources[0].RawJSON(), session.Resources[0].RawJSON())
	updated, err := client.Beta.Sessions.Update(ctx, session.ID, anthropic.BetaSessionUpdateParams{
		Title: anthropic.String("Tidied"), Metadata: map[string]string{"when": "now"},
	})
	complete(t, updated, err)
	equal(t, updated.Title, "Tidied")
	equal(t, updated.Metadata, map[string]string{"by": "hand", "when": "now"})
}

// F.116, F.236, F.237
func TestResourcesOfASessionAreListedAndRetrievedAndStay(t *testing.T) {
	ctx, client := connect(t)
	first, second := newStore(t, client, "One"), newStore(t, client, "Two")
	session := newSession(t, client, attached(first.ID, second.ID))
	resources := client.Beta.Sessions.Resources
	params := anthropic.BetaSessionResourceListParams{Limit: anthropic.Int(1)}
	found := all(t, resources.ListAutoPaging(ctx, session.ID, params))
	equal(t, len(found), 2)
	equal(t, found[1].AsMemoryStore().MemoryStoreID, second.ID)

	one, err := resources.Get(ctx, second.ID, anthropic.BetaSessionResourceGetParams{SessionID: session.ID})
	complete(t, one, err)
	equal(t, one.RawJSON(), found[1].RawJSON())
	equal(t, one.AsMemoryStore().JSON.Instructions.Raw(), "null")
	_, err = resources.Delete(ctx, second.ID, anthropic.BetaSessionResourceDeleteParams{SessionID: session.ID})
	refusal(t, err, 400, anthropic.ErrorTypeInvalidRequestError)
	_, err = resources.Add(ctx, session.ID, anthropic.BetaSessionResourceAddParams{},
		option.WithJSONSet("type", "memory_store"), option.WithJSONSet("memory_store_id", first.ID))
	refusal(t, err, 400, anthropic.ErrorTypeInvalidRequestError)
}

// F.116, F.238
func TestSessionsOfAStoreAreListedInBothOrdersAndDirections(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Shared")
	var made []string
	for range 5 {
		made = append(made, newSession(t, client, attached(store.ID)).ID)
	}
	newSession(t, client, attached())
	ids := func(sessions []anthropic.BetaManagedAgentsSession) (ids []string) {
		for _, session := range sessions {
			ids = append(ids, session.ID)
		}
		return ids
	}
	for _, order := range []anthropic.BetaSessionListParamsOrder{"asc", "desc"} {
		params := anthropic.BetaSessionListParams{
			MemoryStoreID: anthropic.String(store.ID), Limit: anthropic.Int(2), Order: order, Statuses: []string{"idle", "running"},
		}
		expected := slices.Clone(made)
		if order == "desc" {
			slices.Reverse(expected)
		}
		equal(t, ids(all(t, client.Beta.Sessions.ListAutoPaging(ctx, params))), expected)

		first, err := client.Beta.Sessions.List(ctx, params)
		complete(t, first, err)
		equal(t, first.JSON.PrevPage.Raw(), "null")
		second, err := first.GetNextPage()
		complete(t, second, err)
		equal(t, ids(second.Data), expected[2:4])
		params.Page = anthropic.String(second.PrevPage)
		back, err := client.Beta.Sessions.List(ctx, params)
		complete(t, back, err)
		equal(t, ids(back.Data), expected[:2])
	}
}

// F.116, F.135, F.239
func TestASessionIsArchivedAndDeletedAndItsStoreStays(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Kept")
	session := newSession(t, client, attached(store.ID))
	_, err := client.Beta.MemoryStores.Delete(ctx, store.ID, anthropic.BetaMemoryStoreDeleteParams{})
	refusal(t, err, 400, anthropic.ErrorTypeInvalidRequestError)

	archived, err := client.Beta.Sessions.Archive(ctx, session.ID, anthropic.BetaSessionArchiveParams{})
	complete(t, archived, err)
	equal(t, archived.JSON.ArchivedAt.Valid(), true)
	mine := anthropic.BetaSessionListParams{MemoryStoreID: anthropic.String(store.ID)}
	equal(t, len(all(t, client.Beta.Sessions.ListAutoPaging(ctx, mine))), 0)
	mine.IncludeArchived = anthropic.Bool(true)
	equal(t, len(all(t, client.Beta.Sessions.ListAutoPaging(ctx, mine))), 1)

	deleted, err := client.Beta.Sessions.Delete(ctx, session.ID, anthropic.BetaSessionDeleteParams{})
	complete(t, deleted, err)
	_, err = client.Beta.Sessions.Get(ctx, session.ID, anthropic.BetaSessionGetParams{})
	refusal(t, err, 404, anthropic.ErrorTypeNotFoundError)
	gone, err := client.Beta.MemoryStores.Delete(ctx, store.ID, anthropic.BetaMemoryStoreDeleteParams{})
	complete(t, gone, err)
}

// F.228, F.229
func TestWhatCannotBeAttachedMakesNoSession(t *testing.T) {
	ctx, client := connect(t)
	store := newStore(t, client, "Once")
	for _, params := range []sessionParams{attached("memstore_nobody"), attached(store.ID, store.ID)} {
		_, err := client.Beta.Sessions.New(ctx, params)
		refusal(t, err, 400, anthropic.ErrorTypeInvalidRequestError)
	}
	page, err := client.Beta.Sessions.List(ctx, anthropic.BetaSessionListParams{MemoryStoreID: anthropic.String(store.ID)})
	complete(t, page, err)
	equal(t, len(page.Data), 0)
}

// F.116, F.206, F.214
func TestASandboxsSessionAndWhatWasWrittenInItDecode(t *testing.T) {
	ctx, client := connect(t)
	session, err := client.Beta.Sessions.Get(ctx, given(t, "MEMORY_SANDBOX_SESSION"), anthropic.BetaSessionGetParams{})
	complete(t, session, err)
	store := session.Resources[0].AsMemoryStore().MemoryStoreID
	versions := client.Beta.MemoryStores.MemoryVersions
	everything := all(t, versions.ListAutoPaging(ctx, store, anthropic.BetaMemoryStoreMemoryVersionListParams{}))
	equal(t, everything[0].CreatedBy.AsSessionActor().SessionID, session.ID)
	equal(t, everything[1].CreatedBy.AsUserActor().UserID, "user_ada")
	its := all(t, versions.ListAutoPaging(ctx, store, anthropic.BetaMemoryStoreMemoryVersionListParams{
		SessionID: anthropic.String(session.ID),
	}))
	equal(t, len(its), 1)
	equal(t, its[0].RawJSON(), everything[0].RawJSON())
}
