/** The contracts linked to an environment, and whether the signer can mint tokens of each contract. */
import {
  type Action,
  type CollectionName,
  type CollectionRecord,
  collectionsOf,
  findSigner,
  linkCollection,
  type ProjectRecord,
  relinkCollection,
  renameCollection,
  unlinkCollection,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import {
  choice,
  disclosure,
  emptyState,
  field,
  hidden,
  number,
  shortened,
  status,
  table,
  time,
} from '../../frame/components.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import { orNull } from '../../frame/or-null.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'collections' | 'signableKeys' | 'reads' | 'frame' | 'settings' | 'readCode'>;

export function createCollectionsPage(parts: Parts): PortalPage {
  const { settings, readCode } = parts;
  const { servedChains } = settings;
  type Store = ReturnType<Parts['collections']['storeFor']>;
  type Run = (store: Store, visit: Visit, values: FormValues) => Promise<unknown>;
  const change = (access: Action, notice: string, run: Run): FormAction => ({
    access,
    run: async (visit, values) => {
      await run(parts.collections.storeFor(visit.author), visit, values);
      return { kind: 'redirect', notice };
    },
  });
  return {
    path: '/projects/:project/environments/:environment/collections',
    access: 'project.read',
    notices: {
      linked: 'Contract linked.',
      renamed: 'Collection renamed.',
      unlinked: 'Contract unlinked. Its pending mints will fail, and any project can now link it.',
    },
    show: async (visit, failure) => {
      const { project, environment } = scopeOf(visit);
      const records = collectionsOf(await parts.collections.all(), project.id);
      const minterState = await readMinterState(parts, environment.id, visit.signal);
      const content = toContent({ visit, settings, minterState, values: failure?.values }, records);
      return { kind: 'page', title: 'Collections', content };
    },
    actions: {
      link: change('collections.link', 'linked', (store, visit, values) => {
        const link = { ...getContract(values), ...readOwner(visit), name: values.text('name') };
        return linkCollection({ store, servedChains, readCode }, link);
      }),
      rename: change('collections.link', 'renamed', (store, visit, values) =>
        renameCollection({ store }, { ...readCollection(visit, values), name: values.text('name') }),
      ),
      relink: change('collections.link', 'linked', (store, visit, values) =>
        relinkCollection({ store, servedChains, readCode }, { ...readCollection(visit, values), ...readOwner(visit) }),
      ),
      unlink: change('collections.unlink', 'unlinked', (store, visit, values) => {
        if (values.text('confirm') !== CONFIRMATION)
          throw invalidField('confirm', `Type ${CONFIRMATION} to unlink this contract.`);
        return unlinkCollection({ store }, readCollection(visit, values));
      }),
    },
  };
}

/** The user types this word to confirm, because any project can link an unlinked contract. */
const CONFIRMATION = 'unlink';

function readOwner(visit: Visit) {
  const { project, environment } = scopeOf(visit);
  if (project.state === 'archived')
    throw invalidField('project', 'The project is archived. Contracts can only be unlinked.');
  return { projectId: project.id, environmentId: environment.id };
}

const getContract = (values: FormValues) => ({ chain: values.text('chain'), contractAddress: values.text('contract') });

/** Reads the project from the path, so a form cannot change a collection of another project. */
function readCollection(visit: Visit, values: FormValues): CollectionName {
  return { ...getContract(values), projectId: scopeOf(visit).project.id };
}

type Records = readonly CollectionRecord[];

interface CollectionsView {
  readonly visit: Visit;
  readonly settings: Parts['settings'];
  readonly minterState: MinterState;
  readonly values: FormValues | undefined;
}

function toContent(view: CollectionsView, records: Records): HtmlValue {
  const { visit, minterState } = view;
  const { project, environment } = scopeOf(visit);
  const linked = records.filter(({ state, environmentId }) => state === 'linked' && environmentId === environment.id);
  const otherRecords = records.filter((record) => !linked.includes(record));
  const list =
    linked.length === 0
      ? emptyState(
          'No collections yet',
          html`<p>A collection is a contract that belongs to your game. Link a contract to see its on-chain activities and to mint tokens. A contract can be linked to only one project.</p>`,
          { path: '/docs/chain/reference#createMintRequests', text: 'How to mint tokens' },
        )
      : table(
          'Collections',
          ['Name', 'Chain', 'Contract', 'Linked', 'Signer'],
          linked.map((record) => {
            const [state = '', signer = ''] = toSigner(minterState, visit, record);
            const isOpen = ['rename', 'unlink'].some((action) => isSubmitted(view, action, record));
            const detail = html`<p>${signer}</p>${toActions(view, record)}`;
            return { cells: [...toCells(record), state], detail, isOpen };
          }),
        );
  return html`${list}${visit.can('collections.link') ? toLinkForm(view) : ''}${otherRecords.length === 0 ? '' : toOtherCollections(visit, project, otherRecords)}`;
}

function toCells({ name, chain, contractAddress, changedAt }: CollectionRecord): HtmlValue[] {
  return [name, html`<code>${chain}</code>`, shortened(contractAddress, `the address of ${name}`), time(changedAt)];
}

function toLinkForm({ visit, settings: { servedChains, checkedChains }, values }: CollectionsView): HtmlValue {
  const isOpen = values?.text('form') === 'link';
  const submitted = (name: string) => (isOpen ? values.text(name) : '');
  const chain = { name: 'chain', label: 'Chain', value: submitted('chain') };
  const unchecked = (servedChains ?? []).filter((name) => !checkedChains.includes(name));
  const form = visit.form(
    'link',
    html`${
      servedChains === null
        ? field({ ...chain, hint: 'As in chain API paths, such as demo-chain.', isRequired: true, maxLength: 64 })
        : choice({ ...chain, choices: servedChains.map((value) => ({ value, text: value })) })
    }${unchecked.length === 0 ? '' : html`<p class="hint">Addresses on ${unchecked.join(', ')} are not checked, because the portal has no node of this chain.</p>`}
${field({ name: 'contract', label: 'Contract address', value: submitted('contract'), hint: '0x followed by 40 hexadecimal digits. Keep the mixed case, so that typos are detected.', isRequired: true, maxLength: 42 })}
${field({ name: 'name', label: 'Name', value: submitted('name'), isRequired: true, maxLength: 200 })}
<button>Link contract</button>`,
  );
  return disclosure('Link a contract', form, isOpen);
}

const toContractFields = ({ chain, contractAddress }: CollectionRecord) =>
  html`${hidden('chain', chain)}${hidden('contract', contractAddress)}`;

const isSubmitted = ({ values }: CollectionsView, action: string, { contractAddress }: CollectionRecord) =>
  values?.text('form') === action && values.text('contract') === contractAddress;

function toActions(view: CollectionsView, record: CollectionRecord): HtmlValue {
  const { visit } = view;
  const rename = visit.form(
    'rename',
    html`${toContractFields(record)}${field({ name: 'name', label: 'Name', value: record.name, isRequired: true, maxLength: 200 })}<button>Rename</button>`,
  );
  const unlink = visit.form(
    'unlink',
    html`<p>Pending mints will fail, and any project will be able to link this contract.</p>${toContractFields(record)}${field({ name: 'confirm', label: `Type ${CONFIRMATION} to confirm`, isRequired: true })}<button class="danger">Unlink</button>`,
  );
  return html`${visit.can('collections.link') ? disclosure('Rename', rename, isSubmitted(view, 'rename', record)) : ''}
${visit.can('collections.unlink') ? disclosure('Unlink', unlink, isSubmitted(view, 'unlink', record)) : ''}`;
}

function toOtherCollections(visit: Visit, project: ProjectRecord, records: Records): HtmlValue {
  const toEnvironmentName = (id: string) => project.environments.find((each) => each.id === id)?.name ?? id;
  const rows = records.map((record) => {
    const { state, environmentId, name } = record;
    const [tag, text] =
      state === 'linked'
        ? [html`linked to ${toEnvironmentName(environmentId)}`, 'Move here']
        : [status('bad', 'unlinked'), 'Link again'];
    const form = visit.form(
      'relink',
      html`${toContractFields(record)}<button class="outline">${text}<span class="visually-hidden"> ${name}</span></button>`,
      { className: 'inline' },
    );
    return [...toCells(record), tag, visit.can('collections.link') ? form : ''];
  });
  const columns = ['Name', 'Chain', 'Contract', 'Changed', 'State', 'Actions'];
  return html`<h2>Other collections in this project</h2>${table('Other collections in this project', columns, rows)}`;
}

type MinterState = Awaited<ReturnType<typeof readMinterState>>;

const MINTS_MAX_AGE_MS = 90 * 86_400_000;

async function readMinterState(parts: Parts, environmentId: string, signal: AbortSignal) {
  const { signableKeys, reads, frame } = parts;
  const search = { environmentId, sinceMs: frame.wallClockMs() - MINTS_MAX_AGE_MS };
  const [keys, signers] = await Promise.all([signableKeys.all(), orNull(reads.mintSigners(search, { signal }))]);
  return { signer: findSigner(keys, environmentId)?.address ?? null, signers };
}

/** Shows whether the collection's signer has the minter role, as of the last mint that proved the role. */
function toSigner({ signer, signers }: MinterState, visit: Visit, collection: CollectionRecord): readonly HtmlValue[] {
  const keys = html`<a href="${pathInEnvironment(visit, 'signable-keys')}">Signable keys</a>`;
  if (signer === null) return [status('warn', 'no signer'), html`No signer. Create one in ${keys}.`];
  const address = shortened(signer, `the signer address for ${collection.name}`);
  if (signers === null) return [address, 'Role status currently unavailable.'];
  const { chain, contractAddress } = collection;
  const found = signers.find(
    (each) =>
      each.chain === chain && isSame(each.contractAddress, contractAddress) && isSame(each.signerAddress, signer),
  );
  const provenMs = found?.roleProvenMs ?? null;
  const shown = html`Signer ${address}<br>`;
  if (found !== undefined && found.waiting > 0) {
    const mints = number(found.waiting, found.waiting === 1 ? 'mint' : 'mints');
    const held = provenMs === null ? '' : html`<br>Had the minter role as of ${time(provenMs)}.`;
    const wait = html`${mints} wait since ${time(found.waitingSinceMs)}: ${found.reason}${held}`;
    return [status('bad', `${mints} waiting`), html`${shown}${wait}`];
  }
  return provenMs === null
    ? [
        status('wait', 'role unknown'),
        html`${shown}Role unknown until the first mint. To grant the role, send the call shown in ${keys}.`,
      ]
    : [status('ok', 'can mint'), html`${shown}Has the minter role as of ${time(provenMs)}.`];
}

const isSame = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
