/** Floor: a bare node:http server that reads the body and responds, without parsing or storing the body. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { RESPONSE_FILE, HTTP_PORT } = process.env;
const body = RESPONSE_FILE === undefined ? '{"success":true}' : readFileSync(RESPONSE_FILE);

createServer((request, response) => {
  request.on('data', () => {});
  request.on('end', () => response.end(body));
}).listen(Number(HTTP_PORT), '127.0.0.1');
