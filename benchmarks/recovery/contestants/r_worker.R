# Finds several components with one package and times inside R; in_r.py describes the conversation.
package <- commandArgs(trailingOnly = TRUE)[1]
suppressMessages(library(package, character.only = TRUE))
answer <- function(...) { cat(..., "\n"); flush(stdout()) }

# Each returns a matrix with one component per row: intercept, then coefficients.
with_intercept <- function(theta, intercept) if (intercept) theta else cbind(0, theta)

sequential_ltsreg <- function(x, y, k, intercept) {
  found <- NULL
  for (j in seq_len(k)) {
    if (length(y) < 2 * ncol(x) + 2) break
    fit <- ltsReg(x, y, alpha = 0.5, intercept = intercept, mcd = FALSE)
    found <- rbind(found, fit$coefficients)
    outside <- fit$lts.wt == 0
    x <- x[outside, , drop = FALSE]
    y <- y[outside]
  }
  with_intercept(found, intercept)
}

one_flexmix <- function(x, y, k, intercept) {
  formula <- if (intercept) y ~ x else y ~ 0 + x
  # Components are never dropped for being small: the fit is told how many there are.
  fit <- flexmix(formula, k = k, control = list(minprior = 0))
  coefficients <- parameters(fit)
  with_intercept(t(coefficients[rownames(coefficients) != "sigma", , drop = FALSE]), intercept)
}

one_mixtools <- function(x, y, k, intercept) {
  capture.output(fit <- regmixEM(y, x, k = k, addintercept = intercept, epsilon = 1e-6))
  with_intercept(t(fit$beta), intercept)
}

find <- switch(package, robustbase = sequential_ltsreg, flexmix = one_flexmix, mixtools = one_mixtools)
answer(paste0("R ", getRversion(), ", ", package, " ", packageVersion(package)))
requests <- file("stdin", "r")
while (length(line <- readLines(requests, n = 1)) > 0) {
  request <- strsplit(line, " ")[[1]]
  rows <- as.integer(request[2])
  columns <- as.integer(request[3])
  values <- readBin(request[1], "double", rows * (columns + 1))
  x <- matrix(values[seq_len(rows * columns)], rows, columns)
  y <- values[-seq_len(rows * columns)]
  set.seed(as.integer(request[6]))
  # A start that fails (singular equations, no convergence) is a start that found nothing.
  theta <- NULL
  time <- system.time(theta <- tryCatch(
    suppressWarnings(find(x, y, as.integer(request[4]), request[5] == "1")),
    error = function(e) NULL
  ))
  if (is.null(theta) || anyNA(theta)) theta <- matrix(0, 0, columns + 1)
  answer(sum(time[c("user.self", "sys.self")]), nrow(theta), sprintf("%.17g", t(theta)))
}
