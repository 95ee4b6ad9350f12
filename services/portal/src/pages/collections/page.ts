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
import { environmentPath } from '../../frame/layout.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { MintSigner } from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'collections' | 'signableKeys' | 'reads' | 'frame' | 'settings'>;

/** Contracts of chains that are linked to an environment of a project. */
export function createCollectionsPage(parts: Parts): PortalPage {
  const { servedChains } = parts.settings;
  return {
    path: '/projects/:project/environments/:environment/collections',
    access: 'project.read',
    notices: {
      linked: 'The contract is linked.',
      renamed: 'The collection has its new name.',
      unlinked: 'Contract unlinked. Its pending mints end as failed, and any project may link it now.',
    },
    show: async (visit, fault) => {
      const { project, environment } = scopeOf(visit);
      const records = collectionsOf(await parts.collections.all(), project.id);
      const minting = await readMinting(parts, environment.id, visit.signal);
      const content = toContent(visit, { records, minting }, fault?.values);
      return { kind: 'page', title: `Collections of ${environment.name}`, content };
    },
    actions: {
      link: changing({ parts, access: 'collections.link', notice: 'linked' }, async (store, visit, values) => {
        const owner = ownerOf(visit);
        await linkCollection({ store, servedChains }, { ...contractOf(values), ...owner, name: values.text('name') });
      }),
      rename: changing({ parts, access: 'collections.link', notice: 'renamed' }, async (store, visit, values) => {
        await renameCollection({ store }, { ...collectionOf(visit, values), name: values.text('name') });
      }),
      relink: changing({ parts, access: 'collections.link', notice: 'linked' }, async (store, visit, values) => {
        await relinkCollection({ store, servedChains }, { ...collectionOf(visit, values), ...ownerOf(visit) });
      }),
      unlink: changing({ parts, access: 'collections.unlink', notice: 'unlinked' }, async (store, visit, values) => {
        if (values.text('confirm') !== CONFIRM)
          throw invalidField('confirm', `Type ${CONFIRM} to take the contract from the project.`);
        await unlinkCollection({ store }, collectionOf(visit, values));
      }),
    },
  };
}

/** An unlinked contract may be linked by another project, so this word has to be typed. */
const CONFIRM = 'unlink';

type Store = ReturnType<Parts['collections']['changedBy']>;
type Run = (store: Store, visit: Visit, values: FormValues) => Promise<void>;

function changing({ parts, access, notice }: { parts: Parts; access: Action; notice: string }, run: Run): FormAction {
  return {
    access,
    run: async (visit, values) => {
      const { project, environment } = scopeOf(visit);
      await run(parts.collections.changedBy(visit.author), visit, values);
      return { kind: 'see', to: `${environmentPath(project.id, environment.name)}/collections`, notice };
    },
  };
}

/** Nothing is linked to an archived project any more; what it has may be unlinked. */
function ownerOf(visit: Visit) {
  const { project, environment } = scopeOf(visit);
  if (project.state === 'archived') throw invalidField('project', 'The project is archived: nothing is linked to it.');
  return { projectId: project.id, environmentId: environment.id };
}

const contractOf = (values: FormValues) => ({
  chain: values.text('chain'),
  contractAddress: values.text('contract'),
});

/** A collection of the project of the path, whatever the form says. */
function collectionOf(visit: Visit, values: FormValues): CollectionName {
  return { ...contractOf(values), projectId: scopeOf(visit).project.id };
}

interface Shown {
  /** Of the project. */
  readonly records: readonly CollectionRecord[];
  readonly minting: Minting;
}

function toContent(visit: Visit, { records, minting }: Shown, values?: FormValues): HtmlValue {
  const { project, environment } = scopeOf(visit);
  const here = records.filter(({ state, environmentId }) => state === 'linked' && environmentId === environment.id);
  const others = records.filter((record) => !here.includes(record));
  const list =
    here.length === 0
      ? emptyState(
          'No collection yet',
          html`<p>A collection is a contract on a chain that belongs to this game. A contract is linked to one project at most.</p>`,
        )
      : table(
          'Collections',
          ['Name', 'Chain', 'Contract', 'Changed', 'Signer', 'Change'],
          here.map((record) => [...toCells(record), toRole(minting, visit, record), toChanges(visit, record, values)]),
        );
  return html`${list}${visit.mayDo('collections.link') ? toLink(visit, values) : ''}${others.length === 0 ? '' : toOthers(visit, project, others)}`;
}

function toCells({ name, chain, contractAddress, changedAt }: CollectionRecord): HtmlValue[] {
  return [name, html`<code>${chain}</code>`, copyable(contractAddress, `the address of ${name}`), time(changedAt)];
}

function toLink(visit: Visit, values?: FormValues): HtmlValue {
  const isTyped = values?.text('deed') === 'link';
  const typed = (name: string) => (isTyped ? values.text(name) : '');
  const form = visit.form(
    'link',
    html`${field({ name: 'chain', label: 'Chain', value: typed('chain'), hint: 'Its name, as paths of the chain API have it, such as demo-chain.', isRequired: true, charactersMax: 64 })}
${field({ name: 'contract', label: 'Address of the contract', value: typed('contract'), hint: '0x and 40 hexadecimal digits. Paste it with its upper and lower case, so that typing errors are noticed.', isRequired: true, charactersMax: 42 })}
${field({ name: 'name', label: 'Name', value: typed('name'), isRequired: true, charactersMax: 200 })}
<button>Link the contract</button>`,
  );
  return disclosure('Link a contract', form, isTyped);
}

/** Which collection a form is about. */
const toHidden = ({ chain, contractAddress }: CollectionRecord) =>
  html`${hidden('chain', chain)}${hidden('contract', contractAddress)}`;

function toChanges(visit: Visit, record: CollectionRecord, values?: FormValues): HtmlValue {
  const isTyped = (deed: string) => values?.text('deed') === deed && values.text('contract') === record.contractAddress;
  const rename = visit.form(
    'rename',
    html`${toHidden(record)}${field({ name: 'name', label: 'Name', value: record.name, isRequired: true, charactersMax: 200 })}<button>Rename</button>`,
  );
  const unlink = visit.form(
    'unlink',
    html`<p>Pending mints end as failed, and any project may link the contract then.</p>${toHidden(record)}${field({ name: 'confirm', label: `Type ${CONFIRM} to go on`, isRequired: true })}<button class="danger">Unlink</button>`,
  );
  return html`${visit.mayDo('collections.link') ? disclosure('Rename', rename, isTyped('rename')) : ''}
${visit.mayDo('collections.unlink') ? disclosure('Unlink', unlink, isTyped('unlink')) : ''}`;
}

/** Of the project's other environments, and those that it has unlinked. */
function toOthers(visit: Visit, project: ProjectRecord, records: readonly CollectionRecord[]): HtmlValue {
  const nameOf = (id: string) => project.environments.find((each) => each.id === id)?.name ?? id;
  const rows = records.map((record) => {
    const { state, environmentId, name } = record;
    const what = state === 'linked' ? 'Move' : 'Link again';
    const form = visit.form(
      'relink',
      html`${toHidden(record)}<button class="outline">${what}<span class="unseen"> ${name}</span></button>`,
      { className: 'inline' },
    );
    const tag =
      state === 'linked' ? html`linked to ${nameOf(environmentId)}` : html`<span class="tag bad">unlinked</span>`;
    return [...toCells(record), tag, visit.mayDo('collections.link') ? form : ''];
  });
  const heads = ['Name', 'Chain', 'Contract', 'Changed', 'State', 'Change'];
  return html`<h2>Not in this environment</h2>${table('Collections that are not in this environment', heads, rows)}`;
}

/** What is known of minting in an environment, as the minter wrote it. */
interface Minting {
  /** Address of the key that signs for its collections; null while there is none. */
  readonly signer: string | null;
  /** Null where it cannot be read now. */
  readonly seen: readonly MintSigner[] | null;
}

/** Of the mints that pages show. What an older one told of a role may have changed since. */
const SEEN_MS = 90 * 86_400_000;

async function readMinting(
  { signableKeys, reads, frame }: Pick<PagesParts, 'signableKeys' | 'reads' | 'frame'>,
  environmentId: string,
  signal: AbortSignal,
): Promise<Minting> {
  const question = { environmentId, sinceMs: frame.wallClockMs() - SEEN_MS };
  const [keys, seen] = await Promise.all([signableKeys.all(), orNull(reads.mintSigners(question, { signal }))]);
  return { signer: findSigner(keys, environmentId)?.address ?? null, seen };
}

/** Whether the signer of a collection holds the minter's role, as of the last mint that told of it. */
function toRole({ signer, seen }: Minting, visit: Visit, collection: CollectionRecord): HtmlValue {
  const { project, environment } = visit;
  const keys = html`<a href="${environmentPath(project?.id ?? '', environment?.name ?? '')}/signable-keys">signable keys</a>`;
  if (signer === null) return html`No signer: make one among the ${keys}.`;
  const address = copyable(signer, `the address that signs for ${collection.name}`);
  return html`${address}<br>${seen === null ? 'Its role cannot be told now.' : toSignerState(find(seen, signer, collection), keys)}`;
}

function find(seen: readonly MintSigner[], signer: string, { chain, contractAddress }: CollectionRecord) {
  const isOf = (each: MintSigner) =>
    each.chain === chain && isSame(each.contractAddress, contractAddress) && isSame(each.signerAddress, signer);
  return seen.find(isOf);
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

/** The words of contracts and of the minter stand as they are. */
function toSignerState(told: MintSigner | undefined, keys: HtmlValue): HtmlValue {
  const heldMs = told?.heldMs ?? null;
  if (told !== undefined && told.waiting > 0) {
    const mints = number(told.waiting, told.waiting === 1 ? 'mint' : 'mints');
    const held = heldMs === null ? '' : html`<br>It held the minter’s role as of ${time(heldMs)}.`;
    return html`<span class="tag bad">waits</span> ${mints}, since ${time(told.waitsMs)}: ${told.why}${held}`;
  }
  if (heldMs !== null) return html`Holds the minter’s role as of ${time(heldMs)}.`;
  return html`Nothing is known yet: the minter asks the contract with the first mint. The call that gives the role stands among the ${keys}.`;
}
