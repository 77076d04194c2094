import http from './http.js';

export const { Answers, Clients } = http;
