import { settleWithin } from '@playline/http';
import { type AcceptMints, MINT_BODY_BYTES_MAX, parseMintBody, type QuotaPolicy, toQuotaTexts } from '@playline/mints';
import type { Collections } from '../../minting/collections.ts';
import { showLimited, toQuotaBody, toQuotaHeaders } from '../../minting/quota-headers.ts';
import type { WithBody } from '../../minting/read-request-body.ts';
import type { CollectionOperation } from './collection-route.ts';

export interface MintParts {
  readonly collections: Pick<Collections, 'requireSigner'>;
  readonly acceptMints: AcceptMints;
  readonly policy: QuotaPolicy;
  readonly withBody: WithBody;
  readonly deadlineMs: number;
}

/** Builds POST mint-requests: accepts every asset of the body, or none. */
export function createMint(parts: MintParts): CollectionOperation {
  const { collections, acceptMints, policy, withBody, deadlineMs } = parts;
  return {
    method: 'POST',
    path: '/nfts/mint-requests',
    policy,
    answer: async ({ exchange, collection, record }) => {
      const standing = await withBody(exchange, MINT_BODY_BYTES_MAX, async (body) => {
        const assets = parseMintBody(body);
        const { projectId, environmentId } = record;
        const requireSigner = () => collections.requireSigner(environmentId);
        const order = { collection, projectId, environmentId, requireSigner, assets, traceId: exchange.traceId };
        // It goes on behind the deadline: requests that come to stand on the log are to be confirmed too.
        return settleWithin(deadlineMs, acceptMints(order));
      }).catch((fault: unknown) => {
        showLimited(exchange, policy, fault);
        throw fault;
      });
      const texts = toQuotaTexts(policy, standing, Date.now());
      exchange.answer(202, JSON.stringify(toQuotaBody('mint', texts)), toQuotaHeaders('mint', texts, false));
    },
  };
}
