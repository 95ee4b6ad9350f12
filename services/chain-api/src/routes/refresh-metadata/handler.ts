import type { ChainMetadataRecord } from '@playline/contracts';
import { settleWithin } from '@playline/http';
import {
  parseCollectionBody,
  parseStacksBody,
  parseTokensBody,
  QuotaExhausted,
  type QuotaPolicy,
  type Quotas,
  type QuotaTexts,
  REFRESH_BODY_BYTES_MAX,
  type SubjectMetadata,
  toQuotaTexts,
} from '@playline/mints';
import type { MintTopics } from '../../minting/publish.ts';
import { addQuotaHeaders, toQuotaBody, toQuotaHeaders } from '../../minting/quota-headers.ts';
import type { WithBody } from '../../minting/read-request-body.ts';
import type { CollectionCall, CollectionOperation } from '../collection-route.ts';

export interface RefreshParts {
  readonly quotas: Quotas;
  readonly policy: QuotaPolicy;
  readonly publish: MintTopics['publishMetadata'];
  readonly withBody: WithBody;
  readonly deadlineMs: number;
}

/** The three operations that set metadata. */
export function createRefreshes(parts: RefreshParts): readonly CollectionOperation[] {
  const refresh = createRefresh(parts);
  const createList = (path: string, parse: (body: Buffer) => readonly SubjectMetadata[]): CollectionOperation => ({
    method: 'POST',
    path,
    policy: parts.policy,
    handle: async (call) => {
      const { texts } = await refresh(call, (body) => ({ subjects: parse(body), metadata: null }));
      const headers = toQuotaHeaders('refresh', texts, false);
      call.exchange.answer(202, JSON.stringify(toQuotaBody('refresh', texts)), headers);
    },
  });
  return [
    {
      method: 'POST',
      path: '/refresh-metadata',
      policy: parts.policy,
      handle: async (call) => {
        const { texts, metadata } = await refresh(call, (body) => {
          const parsed = parseCollectionBody(body);
          const subject = { kind: 'collection', subject: '', metadata: JSON.stringify(parsed) } as const;
          return { subjects: [subject], metadata: parsed };
        });
        const { chain, collection } = call;
        const body = {
          contract_address: collection.contractAddress,
          chain: { id: chain.id, name: chain.name },
          collection_metadata: metadata,
        };
        call.exchange.answer(200, JSON.stringify(body), toQuotaHeaders('refresh', texts, false));
      },
    },
    createList('/metadata/refresh-metadata', parseStacksBody),
    createList('/nfts/refresh-metadata', parseTokensBody),
  ];
}

interface ParsedRefresh<T> {
  readonly subjects: readonly SubjectMetadata[];
  readonly metadata: T;
}

function createRefresh({ quotas, policy, publish, withBody, deadlineMs }: RefreshParts) {
  const accept = async ({ record, exchange, collection }: CollectionCall, subjects: readonly SubjectMetadata[]) => {
    const status = await quotas.take(record.projectId, policy, subjects.length);
    if (!status.isAllowed) throw new QuotaExhausted(status);
    const { chain, contractAddress } = collection;
    const common: Omit<ChainMetadataRecord, keyof SubjectMetadata> = {
      chain,
      contractAddress: Buffer.from(contractAddress.slice(2), 'hex'),
      projectId: record.projectId,
      environmentId: record.environmentId,
      requestedAt: Date.now(),
      traceId: exchange.traceId,
    };
    await publish(subjects.map((subject) => ({ ...common, ...subject })));
    return status;
  };
  return async <T>(
    call: CollectionCall,
    parse: (body: Buffer) => ParsedRefresh<T>,
  ): Promise<{ texts: QuotaTexts; metadata: T }> => {
    const { exchange } = call;
    const { projectId } = call.record;
    try {
      return await withBody({ exchange, projectId, bytesMax: REFRESH_BODY_BYTES_MAX }, async (body) => {
        await call.reauthorise();
        const { subjects, metadata } = parse(body);
        const status = await settleWithin(deadlineMs, accept(call, subjects));
        return { texts: toQuotaTexts(policy, status, Date.now()), metadata };
      });
    } catch (fault) {
      await addQuotaHeaders(exchange, { quotas, policy, projectId }, fault);
      throw fault;
    }
  };
}
