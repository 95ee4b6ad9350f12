/**
 * Assembles answers of brokers with one copy. kafkajs 2.2.4 keeps every chunk of the socket in its own buffer of 64 KiB
 * and joins them when an answer is complete: a fifth of the writer's main thread, and as much again for garbage
 * collection. Here the socket reads into one buffer that is reused, and each answer is copied into its own buffer.
 *
 * `Connection.processData` is changed as well: it joins each answer with the rest of the previous one, which is empty
 * here, and would copy the answer again. The version is pinned, and a contract test fails when its source is another.
 */
import { createRequire } from 'node:module';
import { connect, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { ISocketFactory, ISocketFactoryArgs } from 'kafkajs';

const require = createRequire(import.meta.url);

/** As much as one read can take from a full socket, and small enough for the processor's cache. */
const READ_BYTES = 256 * 1024;
/** The same value as in kafkajs. */
const KEEP_ALIVE_DELAY_MS = 60_000;
/** An answer begins with the number of bytes that follow. */
const SIZE_BYTES = 4;
/** Sixty-four times what one fetch asks for. A larger number cannot be the size of a broker's answer. */
const RESPONSE_BYTES_MAX = 256 * 1024 * 1024;

/** Splits a stream of bytes into answers, each with its size in front. */
export class ResponseReader {
  readonly #onResponse: (response: Buffer) => void;
  readonly #size = Buffer.alloc(SIZE_BYTES);
  #sizeBytes = 0;
  #response: Buffer | null = null;
  #filled = 0;

  constructor(onResponse: (response: Buffer) => void) {
    this.#onResponse = onResponse;
  }

  /**
   * Copies the bytes that came next.
   * @throws RangeError when they contain an impossible size
   */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const part = this.#response ?? this.#size;
      const filled = this.#response === null ? this.#sizeBytes : this.#filled;
      const count = Math.min(part.length - filled, bytes.length - at);
      part.set(bytes.subarray(at, at + count), filled);
      at += count;
      if (this.#response === null) this.#sizeBytes += count;
      else this.#filled += count;
      if (filled + count === part.length) this.#turn();
    }
  }

  /** The size is known: the answer begins. Or the answer is whole. */
  #turn(): void {
    if (this.#response === null) {
      const bytes = this.#size.readInt32BE(0);
      if (bytes <= 0 || bytes > RESPONSE_BYTES_MAX)
        throw new RangeError('a broker announces an answer of no such size');
      this.#response = Buffer.allocUnsafe(SIZE_BYTES + bytes);
      this.#size.copy(this.#response);
      this.#filled = SIZE_BYTES;
      return;
    }
    const response = this.#response;
    this.#response = null;
    this.#sizeBytes = 0;
    this.#onResponse(response);
  }
}

/**
 * Creates the function that connects to brokers. Each `data` event of its sockets is one whole answer, with TLS and
 * without.
 * @param onFault called with every fault of a socket: kafkajs keeps its message but loses its code
 */
export function createSocketFactory(onFault?: (fault: Error) => void): ISocketFactory {
  return ({ host, port, ssl, onConnect }: ISocketFactoryArgs): Socket => {
    const reader = new ResponseReader((response) => socket.emit('data', response));
    const take = (count: number, buffer: Uint8Array) => {
      try {
        reader.push(buffer.subarray(0, count));
      } catch (fault) {
        socket.destroy(fault as Error);
      }
      return true;
    };
    const onread = { buffer: Buffer.allocUnsafeSlow(READ_BYTES), callback: take };
    const socket = ssl
      ? connectTls({ host, port, ...toServerName(host), ...ssl, onread } as ConnectionOptions, onConnect)
      : connect({ host, port, onread }, onConnect);
    if (onFault !== undefined) socket.on('error', onFault);
    return socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
  };
}

/**
 * TLS gets the name of a host, so that a server with several certificates sends the right one. An IP address must not
 * be sent.
 */
function toServerName(host: string): { servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {};
}

interface Connection {
  chunks: Buffer[];
  processData(bytes: Buffer): void;
}

const { prototype }: { prototype: Connection } = require('kafkajs/src/network/connection');
const { processData } = prototype;
prototype.processData = function (bytes) {
  if (this.chunks.length === 1 && this.chunks[0]!.length === 0) this.chunks = [];
  processData.call(this, bytes);
};
