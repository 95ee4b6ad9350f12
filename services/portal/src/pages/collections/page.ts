/** Contracts that are linked to an environment, and whether their signer can mint. */
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
import { orNull } from '../../alerts/find-alerts.ts';
import { copyable, disclosure, emptyState, field, hidden, number, table, time } from '../../frame/components.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { MintSigner } from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'collections' | 'signableKeys' | 'reads' | 'frame' | 'settings'>;

export function createCollectionsPage(parts: Parts): PortalPage {
  const { servedChains } = parts.settings;
  type Store = ReturnType<Parts['collections']['changedBy']>;
  type Run = (store: Store, visit: Visit, values: FormValues) => Promise<unknown>;
  const change = (access: Action, notice: string, run: Run): FormAction => ({
    access,
    run: async (visit, values) => {
      await run(parts.collections.changedBy(visit.author), visit, values);
      return { kind: 'redirect', notice };
    },
  });
  return {
    path: '/projects/:project/environments/:environment/collections',
    access: 'project.read',
    notices: {
      linked: 'Contract linked.',
      renamed: 'Collection renamed.',
      unlinked: 'Contract unlinked. Its pending mints end as failed, and any project may link it now.',
    },
    show: async (visit, fault) => {
      const { project, environment } = scopeOf(visit);
      const records = collectionsOf(await parts.collections.all(), project.id);
      const minting = await readMinting(parts, environment.id, visit.signal);
      const content = toContent(visit, records, minting, fault?.values);
      return { kind: 'page', title: `Collections of ${environment.name}`, content };
    },
    actions: {
      link: change('collections.link', 'linked', (store, visit, values) => {
        const link = { ...contractOf(values), ...ownerOf(visit), name: values.text('name') };
        return linkCollection({ store, servedChains }, link);
      }),
      rename: change('collections.link', 'renamed', (store, visit, values) =>
        renameCollection({ store }, { ...collectionOf(visit, values), name: values.text('name') }),
      ),
      relink: change('collections.link', 'linked', (store, visit, values) =>
        relinkCollection({ store, servedChains }, { ...collectionOf(visit, values), ...ownerOf(visit) }),
      ),
      unlink: change('collections.unlink', 'unlinked', (store, visit, values) => {
        if (values.text('confirm') !== CONFIRM)
          throw invalidField('confirm', `Type ${CONFIRM} to unlink the contract from the project.`);
        return unlinkCollection({ store }, collectionOf(visit, values));
      }),
    },
  };
}

/** Must be typed, because another project may link an unlinked contract. */
const CONFIRM = 'unlink';

function ownerOf(visit: Visit) {
  const { project, environment } = scopeOf(visit);
  if (project.state === 'archived')
    throw invalidField('project', 'The project is archived. Contracts can only be unlinked.');
  return { projectId: project.id, environmentId: environment.id };
}

const contractOf = (values: FormValues) => ({ chain: values.text('chain'), contractAddress: values.text('contract') });

/** A collection of the project of the path, whatever the form contains. */
function collectionOf(visit: Visit, values: FormValues): CollectionName {
  return { ...contractOf(values), projectId: scopeOf(visit).project.id };
}

type Records = readonly CollectionRecord[];

function toContent(visit: Visit, records: Records, minting: Minting, values?: FormValues): HtmlValue {
  const { project, environment } = scopeOf(visit);
  const here = records.filter(({ state, environmentId }) => state === 'linked' && environmentId === environment.id);
  const others = records.filter((record) => !here.includes(record));
  const list =
    here.length === 0
      ? emptyState(
          'No collections yet',
          html`<p>A collection is a contract on a chain that belongs to this game. Link a contract to see its activities and to mint with it. A contract can be linked to one project.</p>`,
        )
      : table(
          'Collections',
          ['Name', 'Chain', 'Contract', 'Changed', 'Signer', 'Actions'],
          here.map((record) => [
            ...toCells(record),
            toSigner(minting, visit, record),
            toActions(visit, record, values),
          ]),
        );
  return html`${list}${visit.mayDo('collections.link') ? toLink(visit, values) : ''}${others.length === 0 ? '' : toOthers(visit, project, others)}`;
}

function toCells({ name, chain, contractAddress, changedAt }: CollectionRecord): HtmlValue[] {
  return [name, html`<code>${chain}</code>`, copyable(contractAddress, `the address of ${name}`), time(changedAt)];
}

function toLink(visit: Visit, values?: FormValues): HtmlValue {
  const isTyped = values?.text('form') === 'link';
  const typed = (name: string) => (isTyped ? values.text(name) : '');
  const form = visit.form(
    'link',
    html`${field({ name: 'chain', label: 'Chain', value: typed('chain'), hint: 'Its name in paths of the chain API, such as demo-chain.', isRequired: true, charactersMax: 64 })}
${field({ name: 'contract', label: 'Contract address', value: typed('contract'), hint: '0x and 40 hexadecimal digits. Paste it with its upper and lower case, so that typing errors are detected.', isRequired: true, charactersMax: 42 })}
${field({ name: 'name', label: 'Name', value: typed('name'), isRequired: true, charactersMax: 200 })}
<button>Link contract</button>`,
  );
  return disclosure('Link a contract', form, isTyped);
}

const toHidden = ({ chain, contractAddress }: CollectionRecord) =>
  html`${hidden('chain', chain)}${hidden('contract', contractAddress)}`;

function toActions(visit: Visit, record: CollectionRecord, values?: FormValues): HtmlValue {
  const isTyped = (action: string) =>
    values?.text('form') === action && values.text('contract') === record.contractAddress;
  const rename = visit.form(
    'rename',
    html`${toHidden(record)}${field({ name: 'name', label: 'Name', value: record.name, isRequired: true, charactersMax: 200 })}<button>Rename</button>`,
  );
  const unlink = visit.form(
    'unlink',
    html`<p>Pending mints end as failed, and any project may link the contract.</p>${toHidden(record)}${field({ name: 'confirm', label: `Type ${CONFIRM} to confirm`, isRequired: true })}<button class="danger">Unlink</button>`,
  );
  return html`${visit.mayDo('collections.link') ? disclosure('Rename', rename, isTyped('rename')) : ''}
${visit.mayDo('collections.unlink') ? disclosure('Unlink', unlink, isTyped('unlink')) : ''}`;
}

function toOthers(visit: Visit, project: ProjectRecord, records: Records): HtmlValue {
  const nameOf = (id: string) => project.environments.find((each) => each.id === id)?.name ?? id;
  const rows = records.map((record) => {
    const { state, environmentId, name } = record;
    const [tag, text] =
      state === 'linked'
        ? [html`linked to ${nameOf(environmentId)}`, 'Move here']
        : [html`<span class="tag bad">unlinked</span>`, 'Link again'];
    const form = visit.form(
      'relink',
      html`${toHidden(record)}<button class="outline">${text}<span class="unseen"> ${name}</span></button>`,
      { className: 'inline' },
    );
    return [...toCells(record), tag, visit.mayDo('collections.link') ? form : ''];
  });
  const heads = ['Name', 'Chain', 'Contract', 'Changed', 'State', 'Actions'];
  return html`<h2>Not in this environment</h2>${table('Collections that are not in this environment', heads, rows)}`;
}

type Minting = Awaited<ReturnType<typeof readMinting>>;

const MINTS_READ_MS = 90 * 86_400_000;

async function readMinting(parts: Parts, environmentId: string, signal: AbortSignal) {
  const { signableKeys, reads, frame } = parts;
  const search = { environmentId, sinceMs: frame.wallClockMs() - MINTS_READ_MS };
  const [keys, signers] = await Promise.all([signableKeys.all(), orNull(reads.mintSigners(search, { signal }))]);
  return { signer: findSigner(keys, environmentId)?.address ?? null, signers };
}

/** Whether the signer of a collection has the minter role, as of the last mint that shows it. */
function toSigner({ signer, signers }: Minting, visit: Visit, collection: CollectionRecord): HtmlValue {
  const keys = html`<a href="${pathInEnvironment(visit, 'signable-keys')}">signable keys</a>`;
  if (signer === null) return html`No signer. Create one in ${keys}.`;
  const address = copyable(signer, `the address that signs for ${collection.name}`);
  const found = signers?.find(
    (each) =>
      each.chain === collection.chain &&
      isSame(each.contractAddress, collection.contractAddress) &&
      isSame(each.signerAddress, signer),
  );
  return html`${address}<br>${signers === null ? 'Its role is not available now.' : toSignerState(found, keys)}`;
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

function toSignerState(found: MintSigner | undefined, keys: HtmlValue): HtmlValue {
  const heldMs = found?.heldMs ?? null;
  if (found !== undefined && found.waiting > 0) {
    const mints = number(found.waiting, found.waiting === 1 ? 'mint' : 'mints');
    const held = heldMs === null ? '' : html`<br>Had the minter role as of ${time(heldMs)}.`;
    return html`<span class="tag bad">waiting</span> ${mints}, since ${time(found.waitsMs)}: ${found.why}${held}`;
  }
  if (heldMs !== null) return html`Has the minter role as of ${time(heldMs)}.`;
  return html`Role unknown until the first mint. The call that grants the role is in ${keys}.`;
}
