/** A realistic mistake in product code, with the quick test that must fail. */
export interface PlantedFault {
  readonly what: string;
  readonly file: string;
  /** Code to replace, which must occur exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Path of the test, if it is not the test file with the same name. */
  readonly test?: string;
}

export const FAULTS: readonly PlantedFault[] = [
  {
    what: 'The gateway responds with 200 before the brokers have acknowledged the messages, so an outage loses events.',
    file: 'services/gateway/src/routes/messages/handler.ts',
    find: 'await parts.publish(outgoing, reservation);',
    replace: 'void parts.publish(outgoing, reservation).catch(() => {});',
    test: 'services/gateway/src/routes/messages/500.test.ts',
  },
  {
    what: 'The gateway responds with 200 when only the leader has the messages, so losing one broker loses messages.',
    file: 'packages/stream/src/kafka/producer/open-producer.ts',
    find: 'const ACKS_ALL = -1;',
    replace: 'const ACKS_ALL = 1;',
    test: 'packages/stream/src/kafka/producer/open-producer.test.ts',
  },
  {
    what: "Anyone with a game's publishable key can erase its players, because erasures also accept that key.",
    file: 'services/gateway/src/main.ts',
    find: "verifySecret: createKeyVerifier({ keys, prefix, kind: 'secret' })",
    replace: `verifySecret: async (key: string) =>
      (await createKeyVerifier({ keys, prefix, kind: 'secret' })(key)) ??
      createKeyVerifier({ keys, prefix, kind: 'publishable' })(key)`,
    test: 'test/conformance/endpoint.test.ts',
  },
  {
    what: "ClickHouse drops the block of one partition as a copy of another partition's block.",
    file: 'packages/stream/src/partitions/block.ts',
    find: 'const { topic, partition, firstTimestampMs = 0, transformVersion, logDecidedAtMs } = block;',
    replace: 'const { topic, firstTimestampMs = 0, transformVersion, logDecidedAtMs } = block;\n  const partition = 0;',
    test: 'services/event-writer/src/pipeline.test.ts',
  },
  {
    what: 'The offset of a block is committed before its rows are inserted, so a crash in between loses events.',
    file: 'packages/stream/src/partitions/block-partition.ts',
    find: 'await this.#write(block);\n      await this.#complete(block);',
    replace: 'await this.#complete(block);\n      await this.#write(block);',
  },
  {
    what: 'A late event of an erased person is stored again.',
    file: 'services/event-writer/src/fences.ts',
    find: "if (head.someOwnKey(isErased)) return 'drop';",
    replace: "if (head.someOwnKey(isErased)) return 'keep';",
    test: 'services/event-writer/src/pipeline.test.ts',
  },
  {
    what: 'The smaller side of a link keeps its person key, so persons with many identities keep changing their key.',
    file: 'packages/people/src/redis/lua/facts.lua',
    find: 'if b.size > a.size or',
    replace: 'if b.size < a.size or',
    test: 'packages/people/src/graph.integration.test.ts',
  },
  {
    what: "A link exactly at an erasure's cut-off restores the erased person.",
    file: 'packages/people/src/redis/lua/components.lua',
    find: 'fact.received_at <= cutoff or fact.event_time <= cutoff',
    replace: 'fact.received_at < cutoff or fact.event_time < cutoff',
    test: 'packages/people/src/graph.integration.test.ts',
  },
  {
    what: 'The linker commits before its decisions are acknowledged, so analysts never see some links.',
    file: 'services/identity-linker/src/steps/decide-facts.ts',
    find: 'decided.catch(() => {}).then(() => publication.done())',
    replace: 'decided.catch(() => {})',
    test: 'services/identity-linker/src/pipeline.test.ts',
  },
  {
    what: 'An erasure does not wait until writers have loaded its fence, so events in flight are stored later.',
    file: 'services/eraser/src/steps/erase-batch.ts',
    find: 'await pause(FENCES_KNOWN_WITHIN_MS, signal);',
    replace: '',
  },
  {
    what: 'An erasure deletes a person whom an operator has unlinked from the erased person.',
    file: 'services/eraser/src/steps/persons.ts',
    find: 'cutoffAt < (edge.unlinkedAtMs ?? NEVER_MS) &&',
    replace: '',
  },
  {
    what: 'A receipt claims that a person is erased while rows of that person remain.',
    file: 'services/eraser/src/steps/erase-batch.ts',
    find: 'if (survivors.length === 0) return;',
    replace: 'if (survivors.length >= 0) return;',
  },
  {
    what: 'The rest of a partly published block is skipped after a restart, so transfers are missing.',
    file: 'services/chain-indexer/src/lane.ts',
    find: 'isPartial ? progress.block : progress.block + 1',
    replace: 'progress.block + 1',
    test: 'services/chain-indexer/src/lane.test.ts',
  },
  {
    what: 'A cursor is accepted with different filters, so pages skip activities.',
    file: 'packages/chain/src/cursor.ts',
    find: 'return [chain, fromIndexedAt, toIndexedAt, contractAddress, type];',
    replace: 'return [chain];',
  },
  {
    what: 'Activities are assigned timestamps below the published watermark, so clients following a feed miss them.',
    file: 'services/activity-writer/src/steps/timed-block.ts',
    find: 'const after = Math.max(from.last, from.watermark);',
    replace: 'const after = from.last;',
    test: 'services/activity-writer/src/steps/assign-times.test.ts',
  },
  {
    what: 'A mint request does not claim its reference id, so a repeated request is accepted twice.',
    file: 'packages/mints/src/redis/scripts.ts',
    find: "  redis.call('SET', KEYS[i], lines[i], 'PX', ARGV[2])\n",
    replace: '',
    test: 'packages/mints/src/claims.integration.test.ts',
  },
  {
    what: 'A signed transaction is sent before it is in the log, so a crash mints the asset a second time.',
    file: 'services/minter/src/lane/mint-lane.ts',
    test: 'services/minter/src/lane/mint-lane.test.ts',
    find: 'await this.#writer.append(batch);',
    replace: 'void this.#writer.append(batch).catch(() => {});',
  },
  {
    what: 'Key checksums are not verified, so every mistyped key costs a lookup in the key store.',
    file: 'packages/access-keys/src/keys/key-text.ts',
    find: 'return checksumOf(key.slice(0, checksumAt)) === key.slice(checksumAt);',
    replace: 'return checksumAt > 0;',
  },
  {
    what: 'A revoked key remains valid.',
    file: 'packages/access-keys/src/keys/key-lookup.ts',
    find: 'return key.revokedAt === null && sinceEndMs < 0 ? key : null;',
    replace: 'return key;',
  },
  {
    what: 'Another site can submit portal forms on behalf of a member, because their tokens are not verified.',
    file: 'services/portal/src/frame/form-tokens.ts',
    find: 'return isSigned && lifetimeS > 0',
    replace: 'return lifetimeS > 0',
  },
];
