import { type CollectionRecord, grantCallsOf, type ShownSignableKey } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { environmentPath } from '../../frame/layout.ts';
import type { Visit } from '../../frame/page.ts';
import { copyableBlock, disclosure } from '../../frame/parts.ts';

interface Grants {
  readonly visit: Visit;
  readonly keys: readonly ShownSignableKey[];
  readonly linked: readonly CollectionRecord[];
}

/** What a key may do: one role each. */
const MAY = { SIGNER_ROLE: 'may sign for the contract', MINTER_ROLE: 'may mint with it' } as const;

/** The calls with which the administrator of each contract lets each key sign and mint: nobody here can send them. */
export function toGrants({ visit, keys, linked }: Grants): HtmlValue {
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
