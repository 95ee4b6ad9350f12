import { type CollectionRecord, findSigner } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { told } from '../../alerts/figures.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { Visit } from '../../frame/page.ts';
import { copyable, number, time } from '../../frame/parts.ts';
import type { MintSigner } from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';

/** What is known of minting in an environment, as the minter wrote it. */
export interface ToldMinting {
  /** Address of the key that signs for its collections; null while there is none. */
  readonly signer: string | null;
  /** Null where it cannot be read now. */
  readonly seen: readonly MintSigner[] | null;
}

/** Of the mints that pages show. What an older one told of a role may have changed since. */
const SEEN_MS = 90 * 86_400_000;

export async function readMinting(
  { signableKeys, reads, frame }: Pick<PagesParts, 'signableKeys' | 'reads' | 'frame'>,
  environmentId: string,
  signal: AbortSignal,
): Promise<ToldMinting> {
  const question = { environmentId, sinceMs: frame.wallClockMs() - SEEN_MS };
  const [keys, seen] = await Promise.all([signableKeys.all(), told(reads.mintSigners(question, { signal }))]);
  return { signer: findSigner(keys, environmentId)?.address ?? null, seen };
}

/** Whether the signer of a collection holds the minter's role, as of the last mint that told of it. */
export function toRole({ signer, seen }: ToldMinting, visit: Visit, collection: CollectionRecord): HtmlValue {
  const { project, environment } = visit;
  const keys = html`<a href="${environmentPath(project?.id ?? '', environment?.name ?? '')}/signable-keys">signable keys</a>`;
  if (signer === null) return html`No signer: make one among the ${keys}.`;
  const address = copyable(signer, `the address that signs for ${collection.name}`);
  return html`${address}<br>${seen === null ? 'Its role cannot be told now.' : toWords(find(seen, signer, collection), keys)}`;
}

function find(seen: readonly MintSigner[], signer: string, { chain, contractAddress }: CollectionRecord) {
  const isOf = (each: MintSigner) =>
    each.chain === chain && isSame(each.contractAddress, contractAddress) && isSame(each.signerAddress, signer);
  return seen.find(isOf);
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

/** The words of contracts and of the minter stand as they are. */
function toWords(told: MintSigner | undefined, keys: HtmlValue): HtmlValue {
  const heldMs = told?.heldMs ?? null;
  if (told !== undefined && told.waiting > 0) {
    const mints = number(told.waiting, told.waiting === 1 ? 'mint' : 'mints');
    const held = heldMs === null ? '' : html`<br>It held the minter’s role as of ${time(heldMs)}.`;
    return html`<span class="tag bad">waits</span> ${mints}, since ${time(told.waitsMs)}: ${told.why}${held}`;
  }
  if (heldMs !== null) return html`Holds the minter’s role as of ${time(heldMs)}.`;
  return html`Nothing is known yet: the minter asks the contract with the first mint. The call that gives the role stands among the ${keys}.`;
}
