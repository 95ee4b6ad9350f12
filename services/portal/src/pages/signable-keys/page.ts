import {
  type CollectionRecord,
  collectionsOf,
  createSignableKey,
  disableSignableKey,
  enableSignableKey,
  grantCallsOf,
  type ShownSignableKey,
  toShownSignableKey,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField, PublicError } from '@playline/errors';
import { copyable, copyableBlock, disclosure, emptyState, field, hidden, table, time } from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { Answer, FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PortalParts } from '../../portal-parts.ts';

type Parts = Pick<PortalParts, 'signableKeys' | 'collections' | 'settings'>;

/** Addresses with which the service may sign for an environment, and the roles that contracts must give them. */
export function createSignableKeysPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/signable-keys',
    access: 'project.read',
    notices: {
      created: 'The key is there. Its private key is sealed: nothing shows it. Give its address the roles next.',
      disabled: 'The key is disabled: nothing is signed with it. Roles that contracts gave it stay on the chain.',
      enabled: 'The key is in use again.',
    },
    show: async (visit, fault) => {
      const { project, environment } = scopeOf(visit);
      const inEnvironment = ({ environmentId }: { environmentId: string }) => environmentId === environment.id;
      const keys = (await parts.signableKeys.all()).filter(inEnvironment).map(toShownSignableKey);
      const linked = collectionsOf(await parts.collections.all(), project.id).filter(
        (record) => record.state === 'linked' && inEnvironment(record),
      );
      const content = toContent({ parts, visit, keys, linked }, fault?.values);
      return { kind: 'page', title: `Signable keys of ${environment.name}`, content };
    },
    actions: { create: creating(parts), disable: disabling(parts), enable: enabling(parts) },
  };
}

const creating = ({ signableKeys, settings }: Parts): FormAction => ({
  access: 'signable-keys.create',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const owner = ownerOf(visit);
    const { signerKey } = settings;
    if (signerKey === null) throw new PublicError('CONFLICT_ERROR', { message: NO_SIGNER });
    const store = signableKeys.changedBy(visit.author);
    await createSignableKey({ store, signerKey }, { ...owner, name: values.text('name') });
    return toSee(visit, 'created');
  },
});

const disabling = ({ signableKeys }: Parts): FormAction => ({
  access: 'signable-keys.disable',
  run: async (visit, values) => {
    const { project, environment } = scopeOf(visit);
    const key = { projectId: project.id, environmentId: environment.id, key: values.text('address') };
    await disableSignableKey({ store: signableKeys.changedBy(visit.author) }, key);
    return toSee(visit, 'disabled');
  },
});

const enabling = ({ signableKeys }: Parts): FormAction => ({
  access: 'signable-keys.create',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const key = { ...ownerOf(visit), key: values.text('address') };
    await enableSignableKey({ store: signableKeys.changedBy(visit.author) }, key);
    return toSee(visit, 'enabled');
  },
});

const NO_SIGNER =
  'No key can be made here: whoever runs the portal has not told it the public key of the signer (SIGNER_PUBLIC_KEY).';

/** Nothing signs for an archived project any more; what it has may be disabled. */
function ownerOf(visit: Visit) {
  const { project, environment } = scopeOf(visit);
  if (project.state === 'archived') throw invalidField('project', 'The project is archived: nothing signs for it.');
  return { projectId: project.id, environmentId: environment.id };
}

function toSee(visit: Visit, notice: string): Answer {
  const { project, environment } = scopeOf(visit);
  return { kind: 'see', to: `${environmentPath(project.id, environment.name)}/signable-keys`, notice };
}

interface Shown {
  readonly parts: Parts;
  readonly visit: Visit;
  readonly keys: readonly ShownSignableKey[];
  /** Contracts whose roles a key may need. */
  readonly linked: readonly CollectionRecord[];
}

function toContent({ parts, visit, keys, linked }: Shown, values?: FormValues): HtmlValue {
  const list =
    keys.length === 0
      ? emptyState(
          'No signable key yet',
          html`<p>A signable key is an address that lets the service sign for you. Its private key is made here, sealed to the process that signs, and known to nobody else: it is never shown and cannot be exported.</p>`,
        )
      : table(
          'Signable keys',
          ['Name', 'Address', 'State', 'Created', 'Change'],
          keys.map((key) => toRow(visit, key)),
        );
  const live = keys.filter(({ state }) => state === 'live');
  return html`${list}${visit.mayDo('signable-keys.create') ? toCreate({ parts, visit }, values) : ''}${live.length === 0 ? '' : toGrants({ visit, keys: live, linked })}`;
}

function toCreate({ parts, visit }: Pick<Shown, 'parts' | 'visit'>, values?: FormValues): HtmlValue {
  if (parts.settings.signerKey === null) return html`<p>${NO_SIGNER}</p>`;
  const isTyped = values?.text('deed') === 'create';
  const name = field({
    name: 'name',
    label: 'Name',
    value: isTyped ? values.text('name') : '',
    isRequired: true,
    charactersMax: 200,
    hint: 'What it signs, such as: minter of swords.',
  });
  return disclosure('Create a key', visit.form('create', html`${name}<button>Create the key</button>`), isTyped);
}

function toRow(visit: Visit, { name, address, state, createdAt }: ShownSignableKey): HtmlValue[] {
  const deed = state === 'live' ? 'disable' : 'enable';
  const [what, className] = state === 'live' ? ['Disable', 'danger'] : ['Enable', 'outline'];
  const form = visit.form(
    deed,
    html`${hidden('address', address)}<button class="${className}">${what}<span class="unseen"> ${name}</span></button>`,
    { className: 'inline' },
  );
  const isAllowed = visit.mayDo(state === 'live' ? 'signable-keys.disable' : 'signable-keys.create');
  const tag = state === 'live' ? html`<span class="tag good">live</span>` : html`<span class="tag bad">disabled</span>`;
  return [name, copyable(address, `the address of ${name}`), tag, time(createdAt), isAllowed ? form : ''];
}

interface Grants {
  readonly visit: Visit;
  readonly keys: readonly ShownSignableKey[];
  readonly linked: readonly CollectionRecord[];
}

/** What a key may do: one role each. */
const MAY = { SIGNER_ROLE: 'may sign for the contract', MINTER_ROLE: 'may mint with it' } as const;

/** The calls with which the administrator of each contract lets each key sign and mint: nobody here can send them. */
function toGrants({ visit, keys, linked }: Grants): HtmlValue {
  const { project, environment } = visit;
  if (project === null || environment === null) return '';
  const path = `${environmentPath(project.id, environment.name)}/collections`;
  const calls =
    linked.length === 0
      ? html`<p>The calls stand here once there is a contract to send them to: <a href="${path}">link a contract</a>.</p>`
      : linked.map((collection) => keys.map((key) => toCalls(collection, key)));
  return html`<h2>Roles</h2>
<p>A key signs and mints only where a contract gives its address the roles. The administrator of the contract sends these calls, from any wallet: to the contract, without value, with the calldata.</p>
<p class="quiet">The portal asks no chain. Whether a contract has given its signer the minter’s role stands at <a href="${path}">Collections</a>, as the minter saw it last.</p>
${calls}`;
}

function toCalls({ name, chain, contractAddress }: CollectionRecord, key: ShownSignableKey): HtmlValue {
  const blocks = grantCallsOf({ contract: contractAddress, address: key.address }).map(
    ({ role, signature, to, data }) => html`<h3>${role}: ${key.name} ${MAY[role]}</h3>
<dl><dt>Chain</dt><dd><code>${chain}</code></dd><dt>To</dt><dd><code>${to}</code></dd><dt>Call</dt><dd><code>${signature}</code></dd></dl>
${copyableBlock(data, `the calldata of ${role}`)}`,
  );
  return disclosure(`${name} on ${chain}: let ${key.name} sign and mint`, blocks);
}
